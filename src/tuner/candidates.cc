#include "src/tuner/candidates.h"

#include <algorithm>
#include <cstdio>

#include "src/tuner/pieces.h"

namespace tutti {
namespace {

// Hosts of many different sizes share blocks out in so many units that a piece has a few bytes of each, or none.
constexpr std::uint64_t kMostUnitsOfMessage = 1024;
constexpr double kMostPeers = 63;  // Lanes take memory. An all-to-all has them all the same.
// By mapped memory a call begins when each rank has said where its buffers are and has heard all others, and nobody
// goes ahead of them, on a way from or to a root neither. Who shares a core needs it twice, to say it and to hear it.
constexpr double kHopsToMeet = 1;
constexpr double kTurnsToMeet = 2;

bool is_mapped(const Algorithm& algorithm) { return std::string_view(algorithm.name()).ends_with("_mapped"); }

std::string against_algorithm(const Query& query, const Algorithm& algorithm) {
  if (!query.algorithm.empty() && query.algorithm != algorithm.name()) return "another algorithm is forced";
  if (is_mapped(algorithm) && query.wire != WireFormat::none)
    return "nothing is sent where memory is mapped, so nothing travels narrower";
  if (is_mapped(algorithm) && query.network) return "it works in memory that all ranks can map, and hosts are several";
  if (is_mapped(algorithm) && !query.mapped) return "it works in memory that all ranks can map, and this is private";
  if (!algorithm.supports(query.problem)) {
    Problem on_hosts = query.problem;
    on_hosts.groups = {{query.problem.ranks, query.problem.ranks}};
    on_hosts.ranks *= 2;
    const bool wants_hosts = query.problem.groups.empty() && algorithm.supports(on_hosts);
    return wants_hosts ? "it works across hosts of several ranks" : "it does not do " + describe(query.problem);
  }
  if (query.teams == 0 && query.algorithm.empty() && algorithm.name() == std::string_view("hierarchical_tree"))
    return "nobody has measured it on host memory yet";
  if (query.wire != WireFormat::none && !algorithm.bears_rounding(query.problem))
    return "its ranks would end with different bits where messages are rounded";
  return "";
}

std::string against_protocol(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  if (!query.protocol.empty() && query.protocol != name(protocol)) return "another protocol is forced";
  if (protocol == Protocol::rows && query.teams == 0) return "rows are for devices";
  if (protocol == Protocol::rows && query.protocol.empty()) return "nobody has measured rows yet";
  if (is_mapped(algorithm) && protocol != Protocol::bulk) return "no messages pass where memory is mapped";
  if (query.network && protocol != Protocol::bulk) return "between hosts messages go in bulk";
  if (query.teams > 0 && query.wire != WireFormat::none && protocol != Protocol::bulk)
    return "on devices messages in a wire format go in bulk";
  return "";
}

// Of host memory.
std::string against_size(const Query& query, const Algorithm& algorithm, Protocol protocol, const Effort& effort) {
  if (query.teams > 0) return "";
  const Collective collective = query.problem.collective;
  const std::uint64_t blocks = collective == Collective::all_reduce ? 1 : query.problem.ranks;
  if (query.algorithm.empty() && is_mapped(algorithm) && query.block_bytes * blocks < kMappedBytes)
    return "memory is not mapped for less than " + std::to_string(kMappedBytes) + " bytes";
  if (protocol != Protocol::lines || !query.protocol.empty()) return "";
  const bool crowded = query.machine != nullptr && query.machine->ranks_per_core > 1;
  if (query.wire != WireFormat::none && effort.longest > 1) return "groups of a wire format cannot be cut to fit lines";
  const std::uint64_t one_way = crowded ? kFewLinesBytes : kOneWayLinesBytes;
  const std::uint64_t most = has_root(collective) ? one_way : kLinesBytes;
  const auto bytes = static_cast<double>(message_bytes(query, query.wire));
  if (effort.longest * bytes <= static_cast<double>(most)) return "";
  return "not considered unless asked for: messages of more than " + std::to_string(most) +
         " bytes are as fast in bulk or faster";
}

std::string against_error(const Query& query, const Effort& effort) {
  const bool bounded = query.max_relative_error > 0 && query.wire != WireFormat::none;
  if (!bounded || keeps_to(query.max_relative_error, query.wire, effort)) return "";
  char text[96];
  std::snprintf(text, sizeof text, "its error is expected to be more than %.4g, or too near to it",
                query.max_relative_error);
  return text;
}

Candidate candidate_of(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  Candidate candidate;
  candidate.choice = choice_of(query, algorithm.name(), protocol);
  candidate.parts = prediction_of(query, candidate.choice);
  candidate.predicted_us = candidate.parts.total_us();
  return candidate;
}

// Of one format.
void add_candidates(const Query& query, std::vector<Candidate>& found) {
  for (const Algorithm* algorithm : query.catalogue) {
    for (const Protocol protocol : {Protocol::lines, Protocol::bulk, Protocol::rows}) {
      if (ruled_out(query, *algorithm, protocol).empty()) found.push_back(candidate_of(query, *algorithm, protocol));
    }
  }
}

// What a device does unasked, it can do.
bool is_of_table(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  if (query.teams == 0 || !algorithm.supports(query.problem)) return false;
  const bool narrow = query.wire != WireFormat::none;
  if (narrow && (is_mapped(algorithm) || protocol != Protocol::bulk || !algorithm.bears_rounding(query.problem)))
    return false;
  if (!against_error(query, algorithm.effort(query.problem)).empty()) return false;
  const Choice choice = choose_for_teams(query);
  return choice.algorithm == algorithm.name() && choice.protocol == protocol && (query.mapped || !choice.mapped);
}

}  // namespace

bool suits_hosts(std::uint64_t units, const Problem& problem) {
  if (problem.groups.empty()) return true;
  const std::vector<Rank>& sizes = problem.groups[0];
  return units <= kMostUnitsOfMessage * *std::min_element(sizes.begin(), sizes.end());
}

std::string ruled_out(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  if (is_of_table(query, algorithm, protocol)) return "";
  std::string why = against_algorithm(query, algorithm);
  if (why.empty()) why = against_protocol(query, algorithm, protocol);
  if (!why.empty()) return why;
  const Effort effort = algorithm.effort(query.problem);
  if (query.algorithm.empty() && !suits_hosts(effort.units, query.problem))
    return "hosts of so many sizes would share a block out in " + std::to_string(effort.units) + " parts";
  const bool meshed = query.problem.collective == Collective::all_to_all || is_mapped(algorithm);
  if (query.algorithm.empty() && !meshed && effort.peers > kMostPeers)
    return "each rank would have lanes to all others";
  why = against_error(query, effort);
  return why.empty() ? against_size(query, algorithm, protocol, effort) : why;
}

std::vector<WireFormat> formats_of(const Query& query) {
  if (query.max_relative_error == 0) return {query.wire};
  std::vector<WireFormat> formats = {WireFormat::none};
  for (const WireFormat format : kBoundedFormats) {
    if (message_bytes(query, format) < query.block_bytes) formats.push_back(format);
  }
  return formats;
}

Prediction prediction_of(const Query& query, const Choice& choice) {
  const Machine& usual = query.teams > 0 ? machine_of_devices() : machine_of_hosts();
  const Machine& machine = query.machine != nullptr ? *query.machine : usual;
  const bool alone = query.network && query.problem.groups.empty();
  const auto named = [&](const Algorithm* algorithm) { return choice.algorithm == algorithm->name(); };
  const Effort effort = (*std::find_if(query.catalogue.begin(), query.catalogue.end(), named))->effort(query.problem);
  Load load = {.block_bytes = static_cast<double>(message_bytes(query, choice.wire)),
               .protocol = choice.protocol,
               .piece_bytes = static_cast<double>(choice.piece_bytes),
               .channels = choice.channels,
               .level = alone ? 1U : 0U,
               .rooted = has_root(query.problem.collective),
               .ranks = static_cast<double>(query.problem.ranks),
               .copied = query.problem.collective == Collective::reduce ? 0.0 : 1.0,
               .met = !choice.mapped || query.teams > 0 ? 0
                      : machine.ranks_per_core > 1      ? kTurnsToMeet
                                                        : kHopsToMeet};
  if (choice.wire != WireFormat::none) {
    load.coding = {.wire = choice.wire,
                   .type = query.type,
                   .values_bytes = static_cast<double>(query.block_bytes / size_of(query.type) * sizeof(float)),
                   .blocks = coded_of(query.problem, effort)};
    if (query.teams > 0) {  // A team has memory to wait for, and makes 16 bits float32 meanwhile.
      load.coding.type = DataType::float32;
      load.coding.values_bytes = static_cast<double>(query.block_bytes);
    }
  }
  return predict(effort, load, machine);
}

Result<std::vector<Candidate>> candidates(const Query& query) {
  TUTTI_CHECK_OK(check_query(query));
  std::vector<Candidate> found;
  Query asked = query;
  for (const WireFormat format : formats_of(query)) {
    asked.wire = format;
    add_candidates(asked, found);
  }
  const auto weight = [](const Candidate& candidate) {
    return candidate.predicted_us * (candidate.choice.wire == WireFormat::none ? 1 : kWorthRounding);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Candidate& a, const Candidate& b) { return weight(a) < weight(b); });
  if (query.teams == 0) return found;
  asked.wire = format_for_teams(query);
  const Choice first = choose_for_teams(asked);
  const auto table = std::find_if(found.begin(), found.end(), [&](const Candidate& candidate) {
    return candidate.choice.algorithm == first.algorithm && candidate.choice.protocol == first.protocol &&
           candidate.choice.wire == first.wire;
  });
  if (table != found.end()) std::rotate(found.begin(), table, table + 1);
  return found;
}

}  // namespace tutti
