#include "src/tuner/candidates.h"

#include <algorithm>
#include <cstdio>

#include "src/tuner/choose_over_hosts.h"
#include "src/tuner/chunks.h"

namespace tutti {
namespace {

// With hosts of many different sizes, blocks can have so many units that a chunk contains a few bytes of each, or none.
constexpr std::uint64_t kMaxUnitsOfMessage = 1024;
constexpr double kMaxPeers = 63;  // Lanes take memory. All-to-all needs them in any case.
// With mapped memory, a rank begins a call after it has published its buffer addresses and read those of all others. No
// rank runs ahead, not even in calls with a root. A rank on an oversubscribed core needs two time slices, to publish
// and to read.
constexpr double kHopsToExchange = 1;
constexpr double kTimeSlicesToExchange = 2;

bool is_mapped(const Algorithm& algorithm) { return std::string_view(algorithm.name()).ends_with("_mapped"); }
bool is_staged(const Algorithm& algorithm) { return std::string_view(algorithm.name()).ends_with("_staged"); }

std::string against_algorithm(const Query& query, const Algorithm& algorithm) {
  if (!query.algorithm.empty() && query.algorithm != algorithm.name()) return "another algorithm is forced";
  if (is_staged(algorithm) && query.thread_blocks == 0) return "GPUs only";
  if ((is_mapped(algorithm) || is_staged(algorithm)) && query.compression != CompressionFormat::none)
    return "has no messages to compress";
  if (is_staged(algorithm) && !has_ring(query, algorithm.name()))
    return is_staged_over_hosts(algorithm.name())
               ? "needs several hosts whose GPUs NVSwitches connect"
               : "needs several GPUs of one host or NVLink domain, each pair connected by NVLink";
  const bool staged_by_switches = algorithm.name() == kSwitchStaged || is_staged_over_hosts(algorithm.name());
  const bool lacks_switches =
      (staged_by_switches && !query.by_switches) || (algorithm.name() == kSwitchMapped && !query.by_switches_mapped);
  if (lacks_switches && query.algorithm.empty())
    return reduces(query.problem.collective) ? "needs NVSwitches that add the type of these elements"
                                             : "needs NVSwitches between the GPUs";
  if (is_mapped(algorithm) && query.network) return "needs buffers that all ranks can access, on one host";
  if (is_mapped(algorithm) && !query.mapped) return "needs buffers that all ranks can access (tutti_mem_alloc)";
  if (!algorithm.supports(query.problem)) {
    Problem on_hosts = query.problem;
    on_hosts.groups = {{query.problem.ranks, query.problem.ranks}};
    on_hosts.ranks *= 2;
    const bool requires_hosts = query.problem.groups.empty() && algorithm.supports(on_hosts);
    return requires_hosts ? "needs several hosts with several ranks each"
                          : "does not support " + describe(query.problem);
  }
  const std::string_view name = algorithm.name();
  const bool all_reduces = query.problem.collective == Collective::all_reduce;
  if (query.thread_blocks == 0 && query.algorithm.empty() &&
      (name == "hierarchical_tree" || (all_reduces && name.starts_with("host_"))))
    return "not measured on host memory yet";
  if (query.compression != CompressionFormat::none && !algorithm.supports_compression(query.problem))
    return "ranks would end with different bits under compression";
  return "";
}

std::string against_protocol(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  if (!query.protocol.empty() && query.protocol != name(protocol)) return "another protocol is forced";
  if (protocol == Protocol::ll128 && query.thread_blocks == 0) return "GPUs only";
  if (query.network && protocol == Protocol::ll128) return "lanes between hosts have no LL128";
  if (protocol == Protocol::ll128 && query.protocol.empty()) return "not measured on GPUs yet";
  if ((is_mapped(algorithm) || is_staged(algorithm)) && protocol != Protocol::simple)
    return "accesses memory of other ranks, with " + std::string(name(Protocol::simple)) + " only";
  if (query.network && !has_protocol_over_hosts(query, algorithm.name(), protocol)) {
    if (query.remote_ll_channels > 0) return std::string(kLlBetweenHosts);
    return query.thread_blocks > 0 ? "lanes between hosts have no LL without GPUDirect"
                                   : name(Protocol::simple) + std::string(" is the only protocol between hosts");
  }
  if (query.thread_blocks > 0 && query.compression != CompressionFormat::none && protocol != Protocol::simple)
    return name(Protocol::simple) + std::string(" is the only protocol for compressed messages on GPUs");
  return "";
}

// Host memory only.
std::string against_size(const Query& query, const Algorithm& algorithm, Protocol protocol, const CostLaw& cost_law) {
  if (query.thread_blocks > 0) return "";
  const Collective collective = query.problem.collective;
  const std::uint64_t blocks = collective == Collective::all_reduce ? 1 : query.problem.ranks;
  if (query.algorithm.empty() && is_mapped(algorithm) && query.block_bytes * blocks < kMappedBytes)
    return "not used below " + std::to_string(kMappedBytes) + " bytes";
  if (protocol != Protocol::ll || !query.protocol.empty()) return "";
  const bool oversubscribed = query.machine != nullptr && query.machine->ranks_per_core > 1;
  if (query.compression != CompressionFormat::none && cost_law.longest > 1)
    return "compressed blocks do not fit messages of " + std::string(name(Protocol::ll));
  const std::uint64_t one_way = oversubscribed ? kOversubscribedLlBytes : kOneWayLlBytes;
  const std::uint64_t max = has_root(collective) ? one_way : kLlBytes;
  const auto bytes = static_cast<double>(message_bytes(query, query.compression));
  if (cost_law.longest * bytes <= static_cast<double>(max)) return "";
  return "above " + std::to_string(max) + " bytes, " + name(Protocol::simple) + " is as fast or faster";
}

std::string against_error(const Query& query, const CostLaw& cost_law) {
  const bool bounded = query.max_relative_error > 0 && query.compression != CompressionFormat::none;
  if (!bounded || keeps_to(query.max_relative_error, query.compression, cost_law)) return "";
  char text[96];
  std::snprintf(text, sizeof text, "expected error above %.4g or close to it", query.max_relative_error);
  return text;
}

Candidate candidate_of(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  Candidate candidate;
  candidate.choice = choice_of(query, algorithm.name(), protocol);
  candidate.parts = prediction_of(query, candidate.choice);
  candidate.predicted_us = candidate.parts.total_us();
  return candidate;
}

// Adds the candidates with the format in query.compression.
void add_candidates(const Query& query, std::vector<Candidate>& found) {
  for (const Algorithm* algorithm : query.catalogue) {
    for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::ll128}) {
      if (ruled_out(query, *algorithm, protocol).empty()) found.push_back(candidate_of(query, *algorithm, protocol));
    }
  }
}

// True if the device table selects this algorithm and protocol, which are then always feasible.
bool is_of_table(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  if (query.thread_blocks == 0 || !algorithm.supports(query.problem)) return false;
  if (query.network && !has_protocol_over_hosts(query, algorithm.name(), protocol)) return false;
  const bool compressed = query.compression != CompressionFormat::none;
  if (compressed && (is_mapped(algorithm) || is_staged(algorithm) || protocol != Protocol::simple ||
                     !algorithm.supports_compression(query.problem)))
    return false;
  if (!against_error(query, algorithm.cost_law(query.problem)).empty()) return false;
  const Choice choice = choose_for_gpus(query);
  return choice.algorithm == algorithm.name() && choice.protocol == protocol && (query.mapped || !choice.mapped) &&
         (!choice.staged || has_ring(query, choice.algorithm));
}

}  // namespace

bool suits_hosts(std::uint64_t units, const Problem& problem) {
  if (problem.groups.empty()) return true;
  const std::vector<Rank>& sizes = problem.groups[0];
  return units <= kMaxUnitsOfMessage * *std::min_element(sizes.begin(), sizes.end());
}

std::string ruled_out(const Query& query, const Algorithm& algorithm, Protocol protocol) {
  if (is_of_table(query, algorithm, protocol)) return "";
  std::string why = against_algorithm(query, algorithm);
  if (why.empty()) why = against_protocol(query, algorithm, protocol);
  if (!why.empty()) return why;
  const CostLaw cost_law = algorithm.cost_law(query.problem);
  if (query.algorithm.empty() && !suits_hosts(cost_law.units, query.problem))
    return "numbers of ranks per host differ: a block would be cut into " + std::to_string(cost_law.units) + " parts";
  const bool meshed =
      query.problem.collective == Collective::all_to_all || is_mapped(algorithm) || is_staged(algorithm);
  if (query.algorithm.empty() && !meshed && cost_law.peers > kMaxPeers)
    return "would need a connection between each pair of ranks";
  why = against_error(query, cost_law);
  return why.empty() ? against_size(query, algorithm, protocol, cost_law) : why;
}

std::vector<CompressionFormat> formats_of(const Query& query) {
  if (query.max_relative_error == 0) return {query.compression};
  std::vector<CompressionFormat> formats = {CompressionFormat::none};
  for (const CompressionFormat format : kBoundedFormats) {
    if (message_bytes(query, format) < query.block_bytes) formats.push_back(format);
  }
  return formats;
}

Prediction prediction_of(const Query& query, const Choice& choice) {
  const Machine& usual = query.thread_blocks > 0 ? machine_of_devices() : machine_of_hosts();
  const Machine& machine = query.machine != nullptr ? *query.machine : usual;
  const bool alone = query.network && query.problem.groups.empty();
  const auto named = [&](const Algorithm* algorithm) { return choice.algorithm == algorithm->name(); };
  const CostLaw cost_law =
      (*std::find_if(query.catalogue.begin(), query.catalogue.end(), named))->cost_law(query.problem);
  Load load = {.block_bytes = static_cast<double>(message_bytes(query, choice.compression)),
               .protocol = choice.protocol,
               .chunk_bytes = static_cast<double>(choice.chunk_bytes),
               .channels = choice.channels,
               .level = alone ? 1U : 0U,
               .overlaps = choice.loop.skew > 0,
               .rooted = has_root(query.problem.collective),
               .ranks = static_cast<double>(query.problem.ranks),
               .copied = query.problem.collective == Collective::reduce ? 0.0 : 1.0,
               .exchange_hops = !choice.mapped || query.thread_blocks > 0 ? 0
                                : machine.ranks_per_core > 1              ? kTimeSlicesToExchange
                                                                          : kHopsToExchange};
  if (choice.compression != CompressionFormat::none) {
    load.coding = {.compression = choice.compression,
                   .type = query.type,
                   .values_bytes = static_cast<double>(query.block_bytes / size_of(query.type) * sizeof(float)),
                   .blocks = codec_work(query.problem, cost_law)};
    if (query.thread_blocks > 0) {  // Memory latency hides the conversion of 16-bit floats.
      load.coding.type = DataType::float32;
      load.coding.values_bytes = static_cast<double>(query.block_bytes);
    }
  }
  Prediction prediction = predict(cost_law, load, machine);
  if (choice.mapped) prediction.launch_us += machine.costs.mapped_us;
  return prediction;
}

Result<std::vector<Candidate>> candidates(const Query& query) {
  TUTTI_CHECK_OK(check_query(query));
  std::vector<Candidate> found;
  Query requested = query;
  for (const CompressionFormat format : formats_of(query)) {
    requested.compression = format;
    add_candidates(requested, found);
  }
  const auto weight = [](const Candidate& candidate) {
    return candidate.predicted_us * (candidate.choice.compression == CompressionFormat::none ? 1 : kWorthRounding);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Candidate& a, const Candidate& b) { return weight(a) < weight(b); });
  if (query.thread_blocks == 0) return found;
  requested.compression = format_for_gpus(query);
  const Choice first = choose_for_gpus(requested);
  const auto table = std::find_if(found.begin(), found.end(), [&](const Candidate& candidate) {
    return candidate.choice.algorithm == first.algorithm && candidate.choice.protocol == first.protocol &&
           candidate.choice.compression == first.compression;
  });
  if (table != found.end()) std::rotate(found.begin(), table, table + 1);
  return found;
}

}  // namespace tutti
