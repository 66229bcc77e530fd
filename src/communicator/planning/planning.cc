#include "src/communicator/planning/planning.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/call/options.h"
#include "src/plan/fuse.h"
#include "src/tuner/candidates.h"

namespace tutti {
namespace {

constexpr Rank kAlwaysVerified = 16;  // Maximum ranks for which every plan is verified before it runs.
constexpr std::uint64_t kMaxChunks = 1U << 30;

// Returns the number of chunks at which `longest` parts, one of each unit of a message, fit a slot. If they never fit,
// returns the number for the smallest parts.
std::uint64_t chunks_for(std::uint64_t unit_bytes, std::uint32_t longest, std::uint64_t slot_bytes,
                         std::uint64_t granule) {
  const std::uint64_t limits = std::max<std::uint64_t>(slot_bytes / granule / longest, 1) * granule;
  return std::max<std::uint64_t>((unit_bytes + limits - 1) / limits, 1);
}

// Verifies the plans. If overlapping chunks need more slots than there are, chunks do not overlap.
Status prove(ProvedPlans& proved, const Loop& loop, Messages messages) {
  auto proof = verify(proved.plans, loop, messages);
  if (proof.ok() && proved.overlaps && !suffices(proof.value(), loop)) {
    proved.overlaps = false;
    Loop apart = loop_of(false, loop.slots);
    apart.ring = loop.ring;
    proof = verify(proved.plans, apart, messages);
  }
  if (proof.ok()) proved.balanced = proof.value().balanced;
  return std::move(proof).status();
}

}  // namespace

std::uint32_t mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(value ^ value >> 32);
}

Problem problem_of(const Call& call, Rank ranks) {
  Problem problem;
  problem.collective = call.collective;
  problem.ranks = ranks;
  problem.root = has_root(call.collective) ? call.root : 0;
  return problem;
}

std::int64_t in_place_distance(const Call& call, Rank ranks, Rank rank) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  if (has_root(call.collective) && rank != call.root) return kNever;
  return -in_place_shift(problem_of(call, ranks), rank) * static_cast<std::int64_t>(call.count * size_of(call.type));
}

CallRecord record_of(const Call& call, const CommunicatorOptions& options) {
  CallRecord record;
  record.count = call.count;
  record.signature = mix(call.count * 0x9e3779b97f4a7c15ULL + shape_of(call) * 31 + options.agreement_hash);
  record.root = has_root(call.collective) ? call.root : 0;
  record.collective =
      options.agreement_hash == kSplitCollective ? kSplitCollective : static_cast<std::uint8_t>(call.collective);
  record.type = static_cast<std::uint8_t>(call.type);
  record.reduction = static_cast<std::uint8_t>(call.reduction);
  record.tune = static_cast<std::uint8_t>(options.tune) & 3U;
  record.has_tune_file = options.tune_file.empty() ? 0 : 1;
  record.requested = options.requested;
  return record;
}

namespace {

// Applies measured figures to a level. If one machine emulates the hosts, high rates are limited by its CPUs, not by
// links, and are ignored.
void adopt(const NetworkFigures& seen, const Costs& costs, bool one_machine, Level& level) {
  constexpr double kOfCpus = 1;
  const double both_ends_us =
      costs.hop_us[static_cast<std::size_t>(level.links)][static_cast<std::size_t>(Protocol::simple)] +
      level.message_us + level.receive_us;
  level.latency_us = std::max(0.0, seen.message_us - both_ends_us);
  if (one_machine && seen.host_gbytes_per_s >= kOfCpus) return;
  level.rank_gbytes_per_s = seen.rank_gbytes_per_s;
  level.member_gbytes_per_s = seen.host_gbytes_per_s;
}

}  // namespace

Machine machine_of(const Hosts& hosts) {
  Machine machine = machine_of_hosts();
  machine.ranks_per_core = hosts.ranks_per_cpu();
  // All ranks wait for the slowest one, so the common instructions determine the rates.
  if (hosts.common_instructions()) set_coding_rates(machine.costs, *hosts.common_instructions());
  if (hosts.one_machine()) {
    for (Level& level : machine.levels) level.member_gbytes_per_s = level.rank_gbytes_per_s = level.latency_us = 0;
  }
  if (hosts.network()) {
    for (std::size_t i = 1; i < machine.levels.size(); ++i)
      adopt(*hosts.network(), machine.costs, hosts.one_machine(), machine.levels[i]);
  }
  return machine;
}

Machine machine_of_gpus(const Hosts& hosts) {
  Machine machine = machine_of_devices();
  if (hosts.network()) adopt(*hosts.network(), machine.costs, hosts.one_machine(), machine.levels[1]);
  return machine;
}

std::string_view forced_algorithm(const CommunicatorOptions& options, const Problem& problem, bool by_switches) {
  const Algorithm* algorithm = find(problem.collective, options.algorithm);
  if (algorithm == nullptr) return {};
  if (!options.algorithm_is_from_nccl) return options.algorithm;
  if (!algorithm->supports(problem)) {
    warn_about_nccl_variable("NCCL_ALGO", options.algorithm + " does not support " + describe(problem));
    return {};
  }
  const bool over_hosts = is_staged_over_hosts(options.algorithm);
  if ((options.algorithm != kSwitchStaged && !over_hosts) || by_switches) return options.algorithm;
  warn_about_nccl_variable(
      "NCCL_ALGO", "for " + describe(problem) +
                       (over_hosts ? ", NVLSTree needs GPUs of several hosts" : ", NVLS needs GPUs of one host") +
                       " whose switches add or multicast the elements");
  return {};
}

Query query_of(const Problem& problem, std::uint64_t block_bytes) {
  Query query;
  query.problem = problem;
  query.block_bytes = block_bytes;
  query.catalogue = catalogue(problem.collective);
  return query;
}

Result<double> predicted_us(const Query& query, const Choice& choice) {
  Query requested = query;
  if (choice.mapped) requested.protocol = "";  // Mapped calls have no messages, so a forced protocol does not apply.
  for (const Candidate& candidate : TUTTI_TRY(candidates(requested))) {
    Choice known = candidate.choice;
    if (known.algorithm != choice.algorithm || known.compression != choice.compression ||
        (!choice.mapped && known.protocol != choice.protocol))
      continue;
    if (query.thread_blocks > 0) known.channels = choice.channels;  // On host memory there is one channel.
    return prediction_of(requested, known).total_us();
  }
  return unsupported("algorithm '" + std::string(choice.algorithm) + "' with protocol '" +
                     tutti::name(choice.protocol) + "' does not support " + describe(query.problem) +
                     "; force neither");
}

Result<Choice> choose_like(const Choice& other, const Query& query) {
  const std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& candidate) {
    return candidate.choice.algorithm == other.algorithm && candidate.choice.protocol == other.protocol &&
           candidate.choice.compression == other.compression;
  });
  return found == all.end() ? choose(query) : Result<Choice>(found->choice);
}

Loop loop_of(bool overlaps, std::uint32_t slots) {
  const std::uint32_t chunks = overlaps ? 2 * slots : 1;
  return {.chunks = chunks, .skew = overlaps ? 1U : 0U, .order = StageOrder::earliest_first, .slots = slots};
}

Result<ProvedPlans> prove_plans(const Algorithm& algorithm, const Problem& problem, const Loop& loop,
                                const RankMapping& rank_mapping, Messages messages) {
  ProvedPlans proved;
  proved.plans = emit_plans(algorithm, logical(rank_mapping, problem));
  for (Plan& plan : proved.plans) fuse(plan);
  fuse_stages(proved.plans);
  proved.overlaps = loop.skew > 0;  // Verification clears this if lanes have too few slots.
  if (problem.ranks <= kAlwaysVerified || config().verify)
    TUTTI_CHECK_OK(
        prove(proved, loop, messages).during("proving " + std::string(algorithm.name()) + " for " + describe(problem)));
  proved.plans = map_ranks(rank_mapping, problem, std::move(proved.plans));
  return proved;
}

CompressionRequest compression_request(const Call& call, const CommunicatorOptions& options, Rank ranks) {
  if (ranks == 1 || call.kind != Kind::collective || !is_compressible(call.type)) return {};
  if (options.max_relative_error > 0) {
    const bool adds = call.reduction != Reduction::prod && call.reduction != Reduction::min &&
                      call.reduction != Reduction::max;  // For other reductions the growth of errors is unknown.
    if (reduces(call.collective) && !adds) return {};
    return {.max_relative_error = options.max_relative_error};
  }
  const auto compression = parse_compression(options.compression.empty() ? "raw" : options.compression);
  if (!compression.ok()) return {};
  const bool narrower = compressed_bytes(compression.value(), call.count, call.type) < call.count * size_of(call.type);
  return {.compression = narrower ? compression.value() : CompressionFormat::none};
}

// With compression, groups of elements are the smallest parts, with a fixed number of bytes in messages.
void fit_slots(std::span<const Plan> plans, std::uint32_t slot_bytes, SlotLimits& limits) {
  std::uint64_t message_units = 0;
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& target : plan.steps[i].targets)
        if (target.space == Space::lane) message_units = std::max<std::uint64_t>(message_units, target.count);
    }
  }
  if (message_units == 0) return;
  const std::uint64_t bytes = std::uint64_t{slot_bytes} * limits.longest_units / message_units;
  limits.slot_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.slot_bytes, bytes));
}

Status cut_call(const Call& call, const Choice& choice, const SlotLimits& limits, Rank ranks, Launch& launch,
                CompressionFormat compression) {
  const std::uint64_t group = compression == CompressionFormat::none ? 1 : kCompressionGroup;
  const std::uint64_t bytes =
      compression == CompressionFormat::none ? size_of(call.type) : compressed_bytes(compression);
  const std::uint64_t groups = (call.count + group - 1) / group;
  const std::uint64_t unit_bytes = (groups + limits.units - 1) / limits.units * bytes;
  const std::uint64_t granule =
      compression == CompressionFormat::none ? std::max<std::uint64_t>(limits.granule_bytes, bytes) : bytes;
  const std::uint64_t slot = std::min<std::uint64_t>(choice.chunk_bytes, limits.slot_bytes);
  const std::uint64_t wanted = slot == 0 ? 1 : chunks_for(unit_bytes, limits.longest_units, slot, granule);
  const std::uint64_t chunks = (wanted + launch.channels - 1) / launch.channels;
  const std::uint64_t parts = chunks * launch.channels;
  const std::uint64_t granules = (unit_bytes + granule - 1) / granule;
  const std::uint64_t part_bytes = (granules + parts - 1) / parts * granule;
  const bool fits = slot == 0 || limits.longest_units * part_bytes <= limits.slot_bytes;
  if (chunks > kMaxChunks || (!fits && !limits.balanced)) {
    return unsupported(std::string(limits.algorithm) + " sends messages that do not fit the slots of " +
                       std::to_string(limits.slot_bytes) + " bytes: force no protocol, or another algorithm");
  }
  launch.element_bytes = static_cast<std::uint32_t>(size_of(call.type));
  launch.group_bytes = static_cast<std::uint16_t>(compressed_bytes(compression));
  launch.rounded_stores = rounded_stores_of(call.collective);
  launch.input.count = launch.output.count = launch.scratch_blocks.count = call.count;
  launch.loop = choice.loop;
  launch.loop.chunks = static_cast<std::uint32_t>(chunks);
  launch.loop.skew = limits.overlaps && chunks > 1 ? choice.loop.skew : 0;
  launch.ring_elements = part_bytes / bytes * group;
  launch.cut = {.units = limits.units,
                .parts = static_cast<std::uint32_t>(parts),
                .granule = static_cast<std::uint16_t>(granule / bytes * group),
                .group = static_cast<std::uint16_t>(group)};
  launch.slice_elements = slot == 0 ? groups * group * limits.units * ranks : limits.slot_bytes / bytes * group;
  return {};
}

// The length of a message is that of the memory that it reads or writes. A forwarded message, which does neither,
// counts as the first units of a block.
Carried bytes_sent(const Program& program, const Launch& launch) {
  const auto is_memory = [](const Operand& operand) { return operand.is_memory(); };
  const std::uint32_t steps = program.rounds[program.stages[program.stage_count]];
  Carried carried;
  for (const Instruction& step : std::span(program.steps, steps)) {
    const std::span all(program.operands + step.first, std::size_t{step.sources} + step.targets);
    const auto memory = std::find_if(all.begin(), all.end(), is_memory);
    for (const Operand& target : all.subspan(step.sources)) {
      for (std::uint32_t unit = 0; target.space == Space::lane && unit < target.count; ++unit) {
        const std::uint32_t index = (memory != all.end() ? memory->unit(unit) : unit) % launch.cut.units;
        const std::uint64_t elements = run_extent(launch.input, launch.cut, index, 1).count;
        carried.element_bytes += elements * launch.element_bytes;
        carried.message_bytes += launch.message_bytes(elements);
      }
    }
  }
  return carried;
}

Carried bytes_sent(const std::vector<const Program*>& programs, const Launch& launch) {
  Carried all;
  for (std::uint32_t first = 0; first < programs.size(); ++first) {
    const Carried one = bytes_sent(*programs[first], launch);
    std::uint64_t channels = 0;
    for (std::uint64_t channel = first; channel < launch.channels; channel += programs.size()) ++channels;
    all.element_bytes += one.element_bytes * channels / launch.channels;
    all.message_bytes += one.message_bytes * channels / launch.channels;
  }
  return all;
}

void trace_choice(Rank rank, const CallRecord& record, const Choice& choice, const Algorithm* mapped) {
  if (!logs(LogLevel::trace)) return;
  const std::string in_place =
      mapped == nullptr ? "" : "; " + std::string(mapped->name()) + " if the buffers of all ranks are mapped";
  log(LogLevel::trace, "rank %u, new call %s: algorithm %s, protocol %s, compression %s, channels %u%s", rank,
      describe(record).c_str(), std::string(choice.algorithm).c_str(), choice.mapped ? "none" : name(choice.protocol),
      choice.compression == CompressionFormat::none ? "none" : name(choice.compression), choice.channels,
      in_place.c_str());
}

}  // namespace tutti
