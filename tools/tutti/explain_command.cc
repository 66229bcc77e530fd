#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "algorithms/catalogue.h"
#include "src/base/config.h"
#include "src/base/json.h"
#include "src/tuner/candidates.h"
#include "src/tuner/tune_cache.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/explain_forced.h"
#include "tools/tutti/explain_topology.h"
#include "tools/tutti/names.h"

namespace tutti {
namespace {

constexpr std::uint32_t kTeams = 32;  // Of a device that nobody has asked.

struct ExplainRequest {
  Query query;
  ForcedNames forced;
  std::string environment;  // What it forces, in words.
  Groups groups;
  std::string tune_file;
  Rank cores = 0;  // That all ranks share; 0: each has its own.
  std::string topology, hosts;
  Machine machine;  // Of cores or of a topology, where one of them was named.
  bool json = false, help = false;
};

enum Option {
  kCollective,
  kBytes,
  kRanks,
  kGroups,
  kHosts,
  kTopology,
  kMemory,
  kTransport,
  kMapped,
  kCores,
  kAlgorithm,
  kProtocol,
  kTuneFile,
  kJson,
  kHelp
};
constexpr option kOptions[] = {
    {"collective", required_argument, nullptr, kCollective},
    {"bytes", required_argument, nullptr, kBytes},
    {"ranks", required_argument, nullptr, kRanks},
    {"groups", required_argument, nullptr, kGroups},
    {"hosts", required_argument, nullptr, kHosts},
    {"topology", required_argument, nullptr, kTopology},
    {"memory", required_argument, nullptr, kMemory},
    {"transport", required_argument, nullptr, kTransport},
    {"mapped", no_argument, nullptr, kMapped},
    {"cores", required_argument, nullptr, kCores},
    {"algorithm", required_argument, nullptr, kAlgorithm},
    {"protocol", required_argument, nullptr, kProtocol},
    {"tune-file", required_argument, nullptr, kTuneFile},
    {"json", no_argument, nullptr, kJson},
    {"help", no_argument, nullptr, kHelp},
    {},
};

constexpr Rank kMostRanks = 1'000'000;

Status parse_groups(ExplainRequest& request, const std::string& text) {
  const std::vector<Groups> layouts = TUTTI_TRY(parse_layouts(text));
  if (layouts.size() != 1) return invalid_argument("explain takes one layout, as 4x8 or 3+5");
  request.groups = layouts.front();
  return {};
}

Status apply(ExplainRequest& request, int option, const std::string& value) {
  switch (option) {
    case kCollective: request.query.problem.collective = TUTTI_TRY(parse_collective(value)); break;
    case kBytes: request.query.block_bytes = static_cast<std::uint64_t>(TUTTI_TRY(parse_bytes(value))); break;
    case kRanks: request.query.problem.ranks = TUTTI_TRY(parse_count(value, 1, kMostRanks)); break;
    case kGroups: return parse_groups(request, value);
    case kHosts: request.hosts = value; break;
    case kTopology: request.topology = value; break;
    case kMemory:
      if (value != "host" && value != "cuda") return invalid_argument("memory is host or cuda");
      request.query.teams = value == "cuda" ? kTeams : 0;
      break;
    case kTransport:
      if (value != "shm" && value != "tcp") return invalid_argument("a transport is shm or tcp here");
      request.query.network = value == "tcp";
      break;
    case kMapped: request.query.mapped = true; break;
    case kCores: request.cores = TUTTI_TRY(parse_count(value, 1, kMostRanks)); break;
    case kAlgorithm: request.forced.algorithm = value; break;
    case kProtocol: request.forced.protocol = value; break;
    case kTuneFile: request.tune_file = value; break;
    case kJson: request.json = true; break;
    case 'h':
    case kHelp: request.help = true; break;
    case ':': return invalid_argument("it wants a value after it");
    default: return invalid_argument("explain has no such option");
  }
  return {};
}

// What was said together. Ranks of several hosts speak over a network, whatever the transport.
Status settle(ExplainRequest& request, bool has_ranks) {
  Query& query = request.query;
  if (!request.topology.empty()) {
    if (!has_ranks) query.problem.ranks = 0;
    TUTTI_CHECK_OK(explain_on({request.topology, request.hosts}, query, request.machine));
  } else if (!request.hosts.empty()) {
    TUTTI_CHECK_OK(parse_groups(request, request.hosts).during("reading --hosts"));
  }
  if (!request.groups.empty()) {
    const Rank ranks = ranks_in(request.groups);
    if (has_ranks && ranks != query.problem.ranks)
      return invalid_argument("--groups have " + std::to_string(ranks) + " ranks together, but --ranks is " +
                              std::to_string(query.problem.ranks));
    query.problem.ranks = ranks;
    query.network = request.groups.front().size() > 1;
    if (query.network && ranks > request.groups.front().size()) query.problem.groups = request.groups;
  }
  if (request.cores > 0) {  // So they are on one machine, with no links between them.
    request.machine = machine_of_hosts();
    request.machine.ranks_per_core = std::max(1.0, static_cast<double>(query.problem.ranks) / request.cores);
    for (Level& level : request.machine.levels)
      level.member_gbytes_per_s = level.rank_gbytes_per_s = level.latency_us = 0;
  }
  query.catalogue = catalogue(query.problem.collective);
  if (!request.forced.algorithm.empty() && find(query.problem.collective, request.forced.algorithm) == nullptr)
    return no_such_algorithm(request.forced.algorithm, query.problem.collective);
  return heed_environment(query.problem, request.forced, request.environment);
}

Result<ExplainRequest> parse(int argc, char** argv) {
  ExplainRequest request;
  request.tune_file = config().tune_file;
  std::vector<int> given;
  opterr = 0;
  optind = 0;
  for (;;) {
    const char* at = argv[std::max(optind, 1)];
    const int chosen = getopt_long(argc, argv, "+:h", kOptions, nullptr);
    if (chosen == -1) break;
    TUTTI_CHECK_OK(apply(request, chosen, optarg ? optarg : "").during(std::string("reading ") + at));
    given.push_back(chosen);
  }
  if (optind < argc) return invalid_argument(std::string("'") + argv[optind] + "' is one argument too many");
  if (request.help) return request;
  const auto has = [&](int option) { return std::find(given.begin(), given.end(), option) != given.end(); };
  if (!has(kCollective) || !has(kBytes) || (!has(kRanks) && !has(kGroups) && !has(kHosts) && !has(kTopology)))
    return invalid_argument("explain wants --collective, --bytes and --ranks, --groups or --topology; see tutti help");
  if (has(kGroups) && has(kHosts))
    return invalid_argument("--hosts without --topology is another name of --groups: give one of them");
  for (const auto& [option, title] : {std::pair(kGroups, "--groups"), std::pair(kMemory, "--memory"),
                                      std::pair(kTransport, "--transport"), std::pair(kCores, "--cores")})
    if (has(kTopology) && has(option))
      return invalid_argument(std::string(title) + " is of other machines: --topology says what there is");
  TUTTI_CHECK_OK(settle(request, has(kRanks)));
  return request;
}

// What trials of such calls came to, and where; no candidates where the file has none of such hosts.
struct Measured {
  std::string machine;
  TunedClass tuned;

  // 0: not measured.
  double us(const Choice& choice) const {
    for (const TunedCandidate& one : tuned.candidates)
      if (one.algorithm == choice.algorithm && one.protocol == choice.protocol) return one.measured_us;
    return 0;
  }
};

// Of a machine's name the hosts and the transport are looked at: its processors are not asked about. Of several
// machines the first is taken.
Result<Measured> measured(const ExplainRequest& request) {
  // Only calls through lanes on host memory are tried.
  if (request.tune_file.empty() || request.query.mapped || request.query.teams > 0) return Measured{};
  const Query& query = request.query;
  std::map<Rank, Rank> counts;  // Of hosts, by their ranks.
  if (request.groups.empty()) counts[query.problem.ranks] = 1;
  else
    for (const Rank ranks : request.groups.front()) ++counts[ranks];
  std::string hosts = ", hosts";
  for (const auto& [ranks, count] : counts) hosts += " " + std::to_string(count) + "x" + std::to_string(ranks);
  TunedClass wanted;
  wanted.collective = query.problem.collective;
  wanted.size_class = size_class(query.block_bytes);
  const TuneCache cache = TUTTI_TRY(read_tune_cache(request.tune_file));
  for (const TuneCache::Machine& machine : cache.machines) {
    const bool tcp = machine.name.ends_with(", tcp");
    if (machine.name.find(hosts + ",") == std::string::npos ||
        (counts.size() == 1 && counts.begin()->second == 1 && tcp != query.network))
      continue;
    for (const TunedClass& tuned : machine.classes)
      if (tuned.same_calls(wanted)) return Measured{machine.name, tuned};
  }
  return Measured{};
}

std::string named(const Candidate& candidate) {
  return std::string(candidate.choice.algorithm) + " with " + name(candidate.choice.protocol);
}

// The part in which the winner gains most.
std::string reason(const Candidate& winner, const Candidate& other) {
  const struct {
    const char* what;
    double mine, theirs;
  } parts[] = {{"to begin", winner.parts.launch_us, other.parts.launch_us},
               {"waiting for messages", winner.parts.hops_us, other.parts.hops_us},
               {"on the busiest link", winner.parts.links_us, other.parts.links_us},
               {"of work by the busiest rank", winner.parts.work_us, other.parts.work_us}};
  const auto* best = std::max_element(std::begin(parts), std::end(parts), [](const auto& a, const auto& b) {
    return a.theirs - a.mine < b.theirs - b.mine;
  });
  char text[160];
  std::snprintf(text, sizeof text, "%.4g us %s, where %s takes %.4g", best->mine, best->what, named(other).c_str(),
                best->theirs);
  return text;
}

std::string verdict(const Query& query, const std::vector<Candidate>& found) {
  if (found.empty()) return "nothing that is asked for is possible";
  const std::string winner = named(found.front());
  if (found.size() == 1) return winner + " is chosen: nothing else is possible";
  if (query.teams > 0) {
    const auto* best = &found.front();
    for (const Candidate& other : found)
      if (other.predicted_us < best->predicted_us) best = &other;
    return winner + " is chosen, from a table of estimates: nobody has measured devices yet" +
           (best == &found.front() ? "" : "; by prediction " + named(*best) + " takes less");
  }
  if (found[1].predicted_us <= found[0].predicted_us) return winner + " is chosen, the first of equals";
  return winner + " is chosen: it takes " + reason(found[0], found[1]);
}

void print_text(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const std::string& environment) {
  std::printf("%s, blocks of %llu bytes, %s%s\n", describe(query.problem).c_str(),
              static_cast<unsigned long long>(query.block_bytes), query.teams > 0 ? "on devices" : "on host memory",
              query.network  ? ", between hosts"
              : query.mapped ? " that all can map"
                             : "");
  if (!environment.empty()) std::printf("%s\n", environment.c_str());
  std::printf("%-20s %-8s %10s %10s %10s %10s %10s %10s   (us)\n", "algorithm", "protocol", "predicted", "launch",
              "hops", "links", "work", "measured");
  for (const Candidate& candidate : found) {
    const Prediction& parts = candidate.parts;
    const double us = measured.us(candidate.choice);
    char text[32] = "-";
    if (us > 0) std::snprintf(text, sizeof text, "%.4g", us);
    std::printf("%-20s %-8s %10.4g %10.4g %10.4g %10.4g %10.4g %10s\n", std::string(candidate.choice.algorithm).c_str(),
                name(candidate.choice.protocol), candidate.predicted_us, parts.launch_us, parts.hops_us, parts.links_us,
                parts.work_us, text);
  }
  if (!measured.machine.empty()) std::printf("measured on %s\n", measured.machine.c_str());
  std::printf("%s.\n", verdict(query, found).c_str());
  std::printf("not possible:\n");
  for (const Algorithm* algorithm : query.catalogue) {
    for (const Protocol protocol : {Protocol::lines, Protocol::bulk, Protocol::rows}) {
      const std::string why = ruled_out(query, *algorithm, protocol);
      if (!why.empty()) std::printf("  %-20s %-8s %s\n", algorithm->name(), name(protocol), why.c_str());
    }
  }
}

void print_levels(const Effort& effort) {
  std::printf("\"levels\": [");
  for (std::size_t i = 0; i < Effort::kLevels; ++i) {
    const Traffic& level = effort.levels[i];
    std::printf(
        "%s{\"depth\": %g, \"chain\": %g, \"stalls\": %g, \"sent\": %g, \"received\": %g, \"messages\": %g, "
        "\"between\": %g}",
        i == 0 ? "" : ", ", level.depth, level.chain, level.stalls, level.sent, level.received, level.messages,
        level.between);
  }
  std::printf("], \"folded\": %g, \"copied\": %g, \"longest\": %g", effort.folded, effort.copied, effort.longest);
}

void print_json(const Query& query, const std::vector<Candidate>& found, const Measured& measured,
                const std::string& environment) {
  std::printf("{\"collective\": \"%s\", \"ranks\": %u, \"bytes\": %llu, \"environment\": %s, \"candidates\": [",
              name(query.problem.collective), query.problem.ranks, static_cast<unsigned long long>(query.block_bytes),
              json_quoted(environment).c_str());
  const char* comma = "";
  for (const Candidate& candidate : found) {
    const Choice& choice = candidate.choice;
    std::printf(
        "%s\n{\"algorithm\": \"%s\", \"protocol\": \"%s\", \"piece_bytes\": %llu, \"predicted_us\": %g, "
        "\"launch_us\": %g, \"hops_us\": %g, \"links_us\": %g, \"work_us\": %g, \"measured_us\": ",
        comma, std::string(choice.algorithm).c_str(), name(choice.protocol),
        static_cast<unsigned long long>(choice.piece_bytes), candidate.predicted_us, candidate.parts.launch_us,
        candidate.parts.hops_us, candidate.parts.links_us, candidate.parts.work_us);
    const double us = measured.us(choice);
    if (us > 0) std::printf("%g, ", us);
    else std::printf("null, ");
    print_levels(find(query.problem.collective, choice.algorithm)->effort(query.problem));
    std::printf("}");
    comma = ",";
  }
  std::printf("],\n\"verdict\": %s,\n\"ruled_out\": [", json_quoted(verdict(query, found)).c_str());
  comma = "";
  for (const Algorithm* algorithm : query.catalogue) {
    for (const Protocol protocol : {Protocol::lines, Protocol::bulk, Protocol::rows}) {
      const std::string why = ruled_out(query, *algorithm, protocol);
      if (why.empty()) continue;
      std::printf("%s\n{\"algorithm\": \"%s\", \"protocol\": \"%s\", \"why\": \"%s\"}", comma, algorithm->name(),
                  name(protocol), why.c_str());
      comma = ",";
    }
  }
  std::printf("]}\n");
}

}  // namespace

Status explain_command(int argc, char** argv) {
  const ExplainRequest request = TUTTI_TRY(parse(argc - 1, argv + 1));
  if (request.help) {
    std::fputs(kUsage, stdout);
    return {};
  }
  Query query = request.query;
  query.algorithm = request.forced.algorithm;  // Names that this copy does not own.
  query.protocol = request.forced.protocol;
  if (!request.topology.empty() || (request.cores > 0 && query.teams == 0)) query.machine = &request.machine;
  const std::vector<Candidate> found = TUTTI_TRY(candidates(query));
  const Measured known = TUTTI_TRY(measured(request));
  if (request.json) print_json(query, found, known, request.environment);
  else print_text(query, found, known, request.environment);
  return {};
}

}  // namespace tutti
