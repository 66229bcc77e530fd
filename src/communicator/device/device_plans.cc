#include "src/communicator/device/device_plans.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "src/executor/thread_block/ll128.h"
#include "src/executor/thread_block/ll_words.h"
#include "src/plan/message_rounds.h"
#include "src/tuner/choose.h"

namespace tutti {
namespace {

constexpr std::uint32_t kWordGranule = kWordData;
constexpr std::uint32_t kEnoughChunks = 16;  // The verifier decides for more chunks, with any staging ring.

Rank position_in(const RankMapping& rank_mapping, Rank rank) {
  const auto found = std::find(rank_mapping.order.begin(), rank_mapping.order.end(), rank);
  return rank_mapping.order.empty() ? rank : static_cast<Rank>(found - rank_mapping.order.begin());
}

// Returns false if has_slots() holds for any number of chunks.
bool may_lack_slots(const std::vector<LaneUse>& uses, const Shape& shape) {
  return std::ranges::any_of(uses,
                             [&](const LaneUse& use) { return use.messages * shape.stages.size() > kSlotsAhead; });
}

}  // namespace

std::uint32_t slot_data(const SlotSizes& slots, Protocol protocol) {
  if (protocol == Protocol::simple) return slots.simple;
  return static_cast<std::uint32_t>(protocol == Protocol::ll128 ? ll128_capacity(slots.ll)
                                                                : ll_words_capacity(slots.ll));
}

std::vector<const Program*> DevicePlan::programs() const {
  std::vector<const Program*> programs;
  for (const auto& each : compiled) programs.push_back(&each->program());
  return programs;
}

// The result must be the same on all ranks: if only one rank failed, the others would wait for it.
Status DevicePlans::check_tags(const Algorithm& algorithm, const std::vector<Plan>& plans) const {
  const std::uint32_t tags = peers_.lanes().bytes == 0 ? 0 : tags_of(plans);
  if (tags <= kMaxLaneTags) return {};
  return unsupported("algorithm '" + std::string(algorithm.name()) + "' has " + std::to_string(tags) +
                     " lanes from one rank to another; at most " + std::to_string(kMaxLaneTags) +
                     " are possible between these ranks: use another algorithm, or do not force one");
}

// Rank orders differ only in the logical root. Without a root, one proof holds for all orders.
Result<const DevicePlan*> DevicePlans::connect(const PlanKey& key, const Choice& choice) {
  for (const auto& known : plans_) {
    if (known->key == key) return known.get();
  }
  const Algorithm& algorithm = *key.algorithm;
  const Protocol protocol = choice.mapped ? Protocol::simple : key.protocol;
  auto connected = std::make_unique<DevicePlan>();
  connected->key = key;
  connected->runs = runs_of(key, accesses_peers(algorithm.name()) || peers_.ranks() == 1 ? "" : name(key.protocol));
  connected->limits = {.algorithm = algorithm.name(),
                       .slot_bytes = choice.mapped ? 0 : slot_data(chooser_.slots_of(algorithm, key.problem), protocol),
                       .granule_bytes = protocol == Protocol::ll ? kWordGranule : kPackGranule,
                       .overlaps = true,
                       .balanced = true};
  Loop loop = loop_of(key.pipelined, kSlotsAhead);
  if (choice.loop.ring > 0) {
    connected->limits.slot_bytes = choice.chunk_bytes;
    connected->limits.longest_units = algorithm.shape(key.problem).scratch;
    connected->limits.balanced = false;
    loop.chunks = kEnoughChunks;
    loop.order = choice.loop.order;
    loop.ring = choice.loop.ring;
  }
  std::optional<Problem> requested;
  ProvedPlans proved;
  for (const RankMapping& rank_mapping : chooser_.rank_orders_of(algorithm, key.problem)) {
    const Problem problem = logical(rank_mapping, key.problem);
    if (problem != requested) {
      proved = TUTTI_TRY(prove_plans(algorithm, problem, loop, {},
                                     key.compression == CompressionFormat::none ? Messages::exact : Messages::rounded));
      TUTTI_CHECK_OK(check_tags(algorithm, proved.plans));
      for (Plan& plan : proved.plans) renumber_tags(plan);
      requested = problem;
    }
    TUTTI_CHECK_OK(add_order(rank_mapping, proved, loop, protocol, *connected));
    if (choice.loop.ring > 0)
      fit_slots(proved.plans, slot_data(chooser_.slots_of(algorithm, key.problem), protocol), connected->limits);
  }
  plans_.push_back(std::move(connected));
  return plans_.back().get();
}

Status DevicePlans::add_order(const RankMapping& rank_mapping, const ProvedPlans& proved, const Loop& proof,
                              Protocol protocol, DevicePlan& connected) {
  const std::string_view algorithm = connected.key.algorithm->name();
  const bool moves =
      uses_rank_order(algorithm) || DevicePlanChooser::reorders(algorithm, rank_mapping, connected.key.problem);
  const RankMapping& order = moves ? rank_mapping : RankMapping();
  const Rank self = position_in(order, self_);
  Loop loop = loop_of(proved.overlaps, kSlotsAhead);
  if (has_inline_flags(protocol)) loop.slots = 1;
  std::vector<LaneUse> uses = lanes_of(proved.plans, self, loop);
  const bool crosses = protocol == Protocol::simple && may_lack_slots(uses, proved.plans[self].shape) &&
                       messages_cross_rounds(proved.plans, proof);
  connected.joins_rounds = crosses && (connected.compiled.empty() || connected.joins_rounds);
  for (LaneUse& use : uses)
    if (!order.order.empty()) use.peer = order.order[use.peer];
  Plan logical_plan = proved.plans[self];
  if (!connected.key.by_switches) expand_all_ranks(logical_plan);
  const Plan mine = mapped_plan(order, connected.key.problem, logical_plan);
  SlotLimits& limits = connected.limits;
  limits.units = mine.shape.units;
  limits.longest_units = std::max(longest_message(proved.plans), limits.longest_units);
  limits.overlaps = limits.overlaps && proved.overlaps;
  limits.balanced = limits.balanced && proved.balanced;
  std::vector<LaneSpec>& specs = connected.specs.emplace_back(flags_of(mine));
  for (const LaneUse& use : uses) specs.push_back(lanes_.spec(use, protocol));
  TUTTI_CHECK_OK(lanes_.create_lanes(connected.specs, static_cast<std::uint32_t>(connected.specs.size())));
  return compile(mine, uses, protocol, connected);
}

// Compiles the plan for the first channel with this rank order; other channels use it, too.
Status DevicePlans::compile(const Plan& plan, const std::vector<LaneUse>& uses, Protocol protocol,
                            DevicePlan& connected) {
  const auto channel = static_cast<std::uint32_t>(connected.compiled.size());
  std::map<std::tuple<Space, Rank, std::uint16_t, bool>, LaneState*> ends;
  for (const LaneSpec& spec : flags_of(plan)) {
    const DeviceLanes::Wanted wanted = {.writer = spec.writer, .tag = spec.tag, .channel = channel};
    if (spec.writer == self_) {
      LaneState*& end = ends[{Space::flag, spec.reader, spec.tag, true}];
      end = TUTTI_TRY(lanes_.end(spec, wanted));
    }
    if (spec.reader != self_) continue;
    DeviceLanes::Wanted reads = wanted;
    reads.which = LaneEnd::reader;
    ends[{Space::flag, spec.writer, spec.tag, false}] = TUTTI_TRY(lanes_.end(spec, reads));
  }
  for (const LaneUse& use : uses) {
    const bool sends = use.direction == Direction::sends;
    const DeviceLanes::Wanted wanted = {.writer = sends ? self_ : use.peer,
                                        .tag = use.tag,
                                        .which = sends ? LaneEnd::writer : LaneEnd::reader,
                                        .channel = channel};
    ends[{Space::lane, use.peer, use.tag, sends}] = TUTTI_TRY(lanes_.end(lanes_.spec(use, protocol), wanted));
  }
  connected.compiled.push_back(
      std::make_unique<CompiledPlan>(plan, [&](const Operand& operand, bool sends) -> LaneState* {
        const auto found = ends.find({operand.space, operand.peer, operand.tag, sends});
        return found == ends.end() ? nullptr : found->second;
      }));
  connected.scratch_units = std::max(connected.scratch_units, connected.compiled.back()->scratch_units());
  return {};
}

}  // namespace tutti
