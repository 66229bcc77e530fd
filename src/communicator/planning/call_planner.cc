#include "src/communicator/planning/call_planner.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/tuner/choose_over_hosts.h"

namespace tutti {
namespace {

AdvisedRanks advised(const Hosts& hosts) {
  std::vector<std::size_t> members(hosts.ranks(), 0);  // By first rank of the host.
  for (const Rank first : hosts.first_ranks()) ++members[first];
  members.erase(std::remove(members.begin(), members.end(), 0), members.end());
  const auto [min, max] = std::minmax_element(members.begin(), members.end());
  return {.communicator = hosts.id(),
          .ranks = hosts.ranks(),
          .hosts = members.size(),
          .min_per_host = *min,
          .max_per_host = *max};
}

// Algorithms that run whatever the memory of the buffers.
std::string names_for(const Problem& problem) {
  std::string names;
  for (const Algorithm* algorithm : catalogue(problem.collective)) {
    const std::string_view name = algorithm->name();
    const bool by_lanes = !name.ends_with("_mapped") && !name.ends_with("_staged");
    if (by_lanes && algorithm->supports(problem)) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

// Returns why an algorithm that works across hosts does not support the problem.
std::string why_not_on_hosts(const Problem& problem, const RankMapping& rank_mapping, bool several_hosts) {
  const std::string works = ": it works across hosts, but ";
  if (!several_hosts) return works + "all these ranks are on one host";
  if (!problem.groups.empty()) return works + "it requires hosts with similar numbers of ranks";
  if (rank_mapping.groups.empty()) return works + "each rank is on a host of its own";
  return works + "it requires consecutive ranks on each host for " + name(problem.collective);
}

// Fails if the algorithm does not support the chosen compression.
Status check_rounding(const Query& query, const Choice& choice) {
  const Algorithm* algorithm = find(query.problem.collective, choice.algorithm);
  if (choice.compression == CompressionFormat::none || algorithm == nullptr) return {};
  if (!choice.mapped && !choice.staged && algorithm->supports_compression(query.problem)) return {};
  return unsupported("algorithm '" + std::string(choice.algorithm) + "' with compression format " +
                     name(choice.compression) + ": " + ruled_out(query, *algorithm, choice.protocol) +
                     "; do not force an algorithm, or set compression to raw");
}

// Fails if a forced protocol does not serve the algorithm between hosts.
Status check_between_hosts(const Query& query, const Choice& choice) {
  if (!query.network || has_protocol_over_hosts(query, choice.algorithm, choice.protocol)) return {};
  const Algorithm* algorithm = find(query.problem.collective, choice.algorithm);
  return unsupported("protocol '" + std::string(name(choice.protocol)) + "' with algorithm '" +
                     std::string(choice.algorithm) +
                     "': " + (algorithm == nullptr ? "" : ruled_out(query, *algorithm, choice.protocol)) +
                     "; use Simple, or do not force a protocol");
}

Result<Choice> choose_by_tuner(const Call& call, const Query& query) {
  Choice choice = TUTTI_TRY(choose(query));
  TUTTI_CHECK_OK(check_rounding(query, choice));
  TUTTI_CHECK_OK(check_between_hosts(query, choice));
  const bool finds_ring = query.thread_blocks > 0 && has_ring(query, choice.algorithm);
  if (choice.staged && query.problem.ranks > 1 && !finds_ring) {
    const char* const needed =
        is_staged_over_hosts(choice.algorithm)
            ? "each of several hosts, connected by NVSwitches (up to 512 hosts, in the first "
              "communicator of the process; with fewer than 6 per host, the communicator must request it, not a call; "
              "or the switches cannot access the memory of a rank: see the log)"
            : "one host or NVLink domain, each pair connected by NVLink";
    return unsupported("algorithm '" + std::string(choice.algorithm) + "' needs several GPUs of " + needed +
                       ": take another, or leave the choice open");
  }
  if (!choice.mapped || query.mapped) return choice;
  const char* const why = call.reduction == Reduction::pre_mul_sum
                              ? "' reads the peers' buffers, but does not apply their factors of a pre-multiplied sum"
                              : "' works in the peers' buffers, which for this call are neither on one device in this "
                                "process nor in windows";
  return unsupported("algorithm '" + std::string(choice.algorithm) + why +
                     ": use an algorithm that is not mapped, or do not force one");
}

}  // namespace

CallPlanner::CallPlanner(Rank rank, const Hosts& hosts, const std::string& plugin, QuerySource query_of)
    : rank_(rank),
      ranks_(hosts.ranks()),
      rank_mapping_(rank_mapping_of(hosts.first_ranks())),
      query_of_(std::move(query_of)) {
  if (ranks_ > 1) adviser_ = TunerAdviser::make(TunerPlugin::of_process(plugin), advised(hosts));
}

Result<ChosenCall> CallPlanner::choose(const Call& call, const CommunicatorOptions& options, const Choice* like) {
  ChosenCall chosen;
  chosen.record = record_of(call, options);
  chosen.query = TUTTI_TRY(query_of_(call, options));
  chosen.choice = TUTTI_TRY(like == nullptr ? choose_by_tuner(call, chosen.query) : choose_like(*like, chosen.query));
  if (adviser_ != nullptr && chosen.query.algorithm.empty()) TUTTI_CHECK_OK(advise(chosen));
  return chosen;
}

Status CallPlanner::advise(ChosenCall& chosen) {
  const Query& query = chosen.query;
  Choice& choice = chosen.choice;
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  // Plugins choose algorithm and protocol. The compression format stays as chosen by the library.
  std::erase_if(all, [&](const Candidate& candidate) { return candidate.choice.compression != choice.compression; });
  const PluginCall question = {.collective = query.problem.collective,
                               .ranks = query.problem.ranks,
                               .block_bytes = query.block_bytes,
                               .registered = query.mapped,
                               .thread_blocks = query.thread_blocks};
  const PluginChoice advised = adviser_->ask(question, all);
  if (advised.silent()) return {};
  if (advised.candidate) choice = all[*advised.candidate].choice;
  if (advised.channels != 0) choice.channels = advised.channels;
  if (query.thread_blocks > 0) limit_channels(query, choice);
  CallRecord& record = chosen.record;
  record.signature = mix(record.signature + 0x9e3779b97f4a7c15ULL * hash(advised, all));
  record.advised = 1;
  chosen.advised = true;
  return {};
}

Result<const Algorithm*> CallPlanner::algorithm_of(const ChosenCall& chosen) const {
  const Problem& problem = chosen.query.problem;
  const std::string_view name = chosen.choice.algorithm;
  const Algorithm* algorithm = find(problem.collective, name);
  if (algorithm != nullptr && algorithm->supports(problem)) return algorithm;
  const bool over_hosts = algorithm != nullptr && requires_hosts(*algorithm, problem.collective);
  return invalid_argument("algorithm '" + std::string(name) + "' does not support " + describe(problem) +
                          (over_hosts ? why_not_on_hosts(problem, rank_mapping_, chosen.query.network) : "") +
                          "; use one of " + names_for(problem) + ", or do not force an algorithm");
}

Result<PlannedCall> CallPlanner::plan(const Call& call, const ChosenCall& chosen) const {
  const Choice& choice = chosen.choice;
  Problem problem = chosen.query.problem;
  const Algorithm* algorithm = TUTTI_TRY(algorithm_of(chosen));
  problem.in_place = call.output - call.input == in_place_distance(call, ranks_, rank_);
  const bool in_place = problem.in_place;
  const bool has_residual = choice.compression != CompressionFormat::none && call.residual != nullptr;
  const bool apart = has_residual && input_blocks(problem, rank_) != output_blocks(problem, rank_);
  const bool copies_input = in_place && (apart || !algorithm->supports(problem));
  if (copies_input) problem.in_place = false;
  const bool several = choice.staged || message_bytes(chosen.query, choice.compression) > choice.chunk_bytes;
  const bool pipelined = several && choice.loop.skew > 0;
  return PlannedCall{.key = {problem, algorithm, choice.protocol, pipelined, choice.compression, choice.by_switches},
                     .in_place = in_place,
                     .copies_input = copies_input,
                     .has_residual = has_residual};
}

Result<double> CallPlanner::predict_us(const Call& call, const CommunicatorOptions& options, bool mappable) {
  if (call.kind != Kind::collective)
    return unsupported("predictions exist for collectives only, not for send, recv and all_to_all_v");
  if (call.count == 0) return 0.0;
  const ChosenCall chosen = TUTTI_TRY(choose(call, options, nullptr));
  if (mappable && !chosen.advised && chosen.query.algorithm.empty()) {
    Query mapped = chosen.query;
    mapped.mapped = true;
    mapped.protocol = "";
    const Choice in_place = TUTTI_TRY(tutti::choose(mapped));
    if (in_place.mapped) return predicted_us(mapped, in_place);
  }
  return predicted_us(chosen.query, chosen.choice);
}

ReportedRuns runs_of(const PlanKey& key, const char* protocol) {
  const LastRun exact = {.algorithm = key.algorithm->name(), .protocol = protocol};
  ReportedRuns runs = {exact, exact};
  if (key.compression == CompressionFormat::none) return runs;
  const double roundings = key.algorithm->cost_law(key.problem).rounded;
  for (LastRun* run : {&runs.nearest, &runs.stochastic}) run->compression = name(key.compression);
  runs.nearest.error = compression_error_after(key.compression, roundings, Rounding::nearest);
  runs.stochastic.error = compression_error_after(key.compression, roundings, Rounding::stochastic);
  return runs;
}

}  // namespace tutti
