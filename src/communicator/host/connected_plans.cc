#include "src/communicator/host/connected_plans.h"

#include <algorithm>
#include <utility>

#include "src/communicator/planning/lane_specs.h"

namespace tutti {
namespace {

constexpr std::uint32_t kCacheLine = 64;

// `alone` is the same use for lanes with one slot, which stays in the nearest cache. One slot suffices if no message is
// sent before the previous one has been answered.
Slots slots_of(const LaneUse& use, const LaneUse& alone, bool few) {
  if (use.form == LaneForm::one_way) return few ? Slots::several : Slots::max;
  return use == alone ? Slots::one : Slots::several;
}

}  // namespace

ConnectedPlans::ConnectedPlans(Membership& membership)
    : membership_(membership),
      rank_mapping_(rank_mapping_of(membership.mesh.hosts().first_ranks())),
      by_domains_(rank_mapping_of(membership.mesh.hosts().first_ranks(), membership.mesh.hosts().domains())) {}

// Used only on request until it is measured. Among hierarchical algorithms, only the all-reduce uses more than one
// level. For the others the groups are hosts, and blocks cross the link of each host once.
const RankMapping& ConnectedPlans::rank_mapping_for(const Problem& flat, std::string_view named) const {
  const Algorithm* algorithm = find(flat.collective, named);
  if (algorithm == nullptr || by_domains_.groups.empty() || !requires_hosts(*algorithm, flat.collective))
    return rank_mapping_;
  Problem grouped = flat;
  grouped.groups = by_domains_.groups;
  const bool levels = flat.collective == Collective::all_reduce || by_domains_.groups.size() == 1;
  const bool does = levels && applies(by_domains_, flat) && algorithm->supports(grouped);
  return does && suits_hosts(algorithm->shape(grouped).units, grouped) ? by_domains_ : rank_mapping_;
}

Result<ConnectedPlan*> ConnectedPlans::plan(const PlanKey& key) {
  for (const auto& known : plans_) {
    if (known->key == key) return known.get();
  }
  const bool rounds = key.compression != CompressionFormat::none;
  const bool by_domains = !key.problem.groups.empty() && key.problem.groups == by_domains_.groups;
  const ProvedPlans proved =
      TUTTI_TRY(prove_plans(*key.algorithm, key.problem, loop_of(key.pipelined, kSimpleSlots),
                            by_domains ? by_domains_ : rank_mapping_, rounds ? Messages::rounded : Messages::exact));
  auto connected = std::make_unique<ConnectedPlan>();
  connected->key = key;
  // Parts of a unit begin at cache lines, or at words for LL. The longest message is that of all ranks, so that all
  // ranks cut alike.
  connected->limits = {.algorithm = key.algorithm->name(),
                       .units = proved.plans[membership_.rank].shape.units,
                       .longest_units = std::max(longest_message(proved.plans), 1U),
                       .granule_bytes = has_inline_flags(key.protocol) ? 8 : kCacheLine,
                       .overlaps = proved.overlaps,
                       .balanced = proved.balanced};
  TUTTI_CHECK_OK(connect_lanes(proved.plans, *connected));
  connected->runs = runs_of(key, connected->limits.slot_bytes == 0 ? "" : name(key.protocol));
  plans_.push_back(std::move(connected));
  return plans_.back().get();
}

Status ConnectedPlans::connect_lanes(const std::vector<Plan>& plans, ConnectedPlan& connected) {
  const PlanKey& key = connected.key;
  const Protocol protocol = key.protocol;
  Loop loop = loop_of(connected.limits.overlaps, kSimpleSlots);
  const std::vector<LaneUse> uses = lanes_of(plans, membership_.rank, loop);
  loop.slots = 1;
  const std::vector<LaneUse> alone = lanes_of(plans, membership_.rank, loop);
  // More ranks may share cores; with more slots they switch less often.
  const bool few = key.pipelined && membership_.ranks == 2;
  std::vector<LaneSpec> specs;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const LaneUse& use = uses[i];
    specs.push_back(spec_of(use, membership_.rank, protocol,
                            slots_of(use, alone[i], few && !membership_.mesh.is_remote(use.peer))));
    connected.limits.slot_bytes =
        protocol == Protocol::ll ? kLineData * (specs.back().slot_bytes / kLineBytes) : specs.back().slot_bytes;
  }
  const Plan& mine = plans[membership_.rank];
  std::vector<LaneSpec> all = flags_of(mine);
  all.insert(all.end(), specs.begin(), specs.end());
  for (const LaneSpec& spec : all) TUTTI_CHECK_OK(membership_.lanes.offer(spec));
  connected.awaited = std::move(all);
  connected.plan = mine;
  expand_all_ranks(connected.plan);  // One rank may run an algorithm for GPUs.
  connected.uses = uses;
  connected.specs = specs;
  return {};
}

Result<std::optional<Rank>> ConnectedPlans::awaited_by(ConnectedPlan& connected) {
  while (!connected.awaited.empty()) {
    const LaneSpec& spec = connected.awaited.back();
    const bool ready = TUTTI_TRY(membership_.lanes.ready(spec));
    if (!ready) return std::optional(spec.writer == membership_.rank ? spec.reader : spec.writer);
    connected.awaited.pop_back();
  }
  if (connected.compiled == nullptr) compile(connected);
  return std::optional<Rank>();
}

void ConnectedPlans::compile(ConnectedPlan& connected) {
  const std::vector<LaneUse>& uses = connected.uses;
  const std::vector<LaneSpec>& specs = connected.specs;
  connected.compiled =
      std::make_unique<CompiledPlan>(connected.plan, [&](const Operand& operand, bool sends) -> LaneState* {
        const Rank writer = sends ? membership_.rank : operand.peer;
        const LaneEnd end = sends ? LaneEnd::writer : LaneEnd::reader;
        if (operand.space == Space::flag)
          return membership_.lanes.end(flag_spec(writer, sends ? operand.peer : membership_.rank, operand.tag), writer,
                                       operand.tag, end);
        for (std::size_t i = 0; i < uses.size(); ++i) {
          const bool same_way = (uses[i].direction == Direction::sends) == sends;
          if (same_way && uses[i].peer == operand.peer && uses[i].tag == operand.tag)
            return membership_.lanes.end(specs[i], writer, operand.tag, end);
        }
        return nullptr;
      });
}

}  // namespace tutti
