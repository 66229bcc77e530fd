// From an algorithm to what a rank's teams obey: plans, proof, lanes. Once for each order of ranks.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "src/communicator/device/device_communicator.h"
#include "src/executor/team/rows.h"
#include "src/executor/team/words.h"
#include "src/tuner/choose.h"
#include "src/tuner/coding.h"

namespace tutti {
namespace {

constexpr std::uint32_t kWordGranule = kWordData;

bool is_moved(std::string_view algorithm, const Embedding& embedding, const Problem& problem) {
  return embeds(embedding, problem) || takes_blocks_along(algorithm, problem.collective);
}

Rank place_in(const Embedding& embedding, Rank rank) {
  const auto found = std::find(embedding.order.begin(), embedding.order.end(), rank);
  return embedding.order.empty() ? rank : static_cast<Rank>(found - embedding.order.begin());
}

}  // namespace

std::uint32_t slot_data(const SlotSizes& slots, Protocol protocol) {
  if (protocol == Protocol::bulk) return slots.bulk;
  return static_cast<std::uint32_t>(protocol == Protocol::rows ? rows_capacity(slots.lines)
                                                               : words_capacity(slots.lines));
}

std::vector<const Program*> DeviceCommunicator::WiredPlan::programs() const {
  std::vector<const Program*> programs;
  for (const auto& each : compiled) programs.push_back(&each->program());
  return programs;
}

const Embedding& DeviceCommunicator::embedding_for(const Problem& problem) const {
  return is_moved("hierarchical", by_rails_, problem) ? by_rails_ : embedding_;
}

std::span<const Embedding> DeviceCommunicator::embeddings_of(const Algorithm& algorithm, const Problem& problem) const {
  return goes_round(algorithm.name()) ? std::span(rounds_.each) : std::span(&embedding_for(problem), 1);
}

// All ranks come to the same answer: a rank that failed by itself would leave the others waiting.
Status DeviceCommunicator::check_tags(const Algorithm& algorithm, const std::vector<Plan>& plans) const {
  const std::uint32_t tags = neighbours_.lanes().bytes == 0 ? 0 : tags_of(plans);
  if (tags <= kMostLaneTags) return {};
  return unsupported("algorithm '" + std::string(algorithm.name()) + "' has " + std::to_string(tags) +
                     " lanes from one rank to another, and between these ranks there is room for " +
                     std::to_string(kMostLaneTags) + ": take another, or leave the choice open");
}

// Orders differ in the logical root, if there is one: without, one proof serves all.
Result<DeviceCommunicator::WiredPlan*> DeviceCommunicator::wired_plan(const PlanKey& key, const Choice& choice) {
  for (const auto& known : plans_) {
    if (known->key == key) return known.get();
  }
  const Algorithm& algorithm = *key.algorithm;
  const Protocol protocol = choice.mapped ? Protocol::bulk : key.protocol;
  auto wired = std::make_unique<WiredPlan>();
  wired->key = key;
  const bool rounds = key.wire != WireFormat::none;
  wired->ran = {.algorithm = algorithm.name(), .protocol = choice.mapped || ranks_ == 1 ? "" : name(key.protocol)};
  if (rounds) {
    wired->ran.wire = name(key.wire);
    const Effort effort = algorithm.effort(key.problem);
    wired->ran.error = expected_error(key.wire, effort);
    wired->at_random = wired->ran;
    wired->at_random.error = wire_error_after(key.wire, effort.rounded, Rounding::stochastic);
  } else {
    wired->at_random = wired->ran;
  }
  wired->room = {.algorithm = algorithm.name(),
                 .slot_bytes = choice.mapped ? 0 : slot_data(links_.slots(), protocol),
                 .granule_bytes = protocol == Protocol::lines ? kWordGranule : kPackGranule,
                 .overlaps = true,
                 .balanced = true};
  std::optional<Problem> asked;
  ProvedPlans proved;
  for (const Embedding& embedding : embeddings_of(algorithm, key.problem)) {
    const Problem problem = logical(embedding, key.problem);
    if (problem != asked) {
      proved = TUTTI_TRY(prove_plans(algorithm, problem, key.pipelined, kSlotsAhead, {},
                                     rounds ? Messages::rounded : Messages::exact));
      TUTTI_CHECK_OK(check_tags(algorithm, proved.plans));
      asked = problem;
    }
    TUTTI_CHECK_OK(add_order(embedding, proved, protocol, *wired));
  }
  plans_.push_back(std::move(wired));
  return plans_.back().get();
}

Status DeviceCommunicator::add_order(const Embedding& embedding, const ProvedPlans& proved, Protocol protocol,
                                     WiredPlan& wired) {
  const std::string_view algorithm = wired.key.algorithm->name();
  const bool moves = goes_round(algorithm) || is_moved(algorithm, embedding, wired.key.problem);
  const Embedding& order = moves ? embedding : Embedding();
  const Rank self = place_in(order, rank_);
  Loop loop = loop_of(proved.overlaps, kSlotsAhead);
  if (is_small(protocol)) loop.slots = 1;
  std::vector<LaneUse> uses = lanes_of(proved.plans, self, loop);
  for (LaneUse& use : uses)
    if (!order.order.empty()) use.peer = order.order[use.peer];
  const Plan mine = embedded(order, wired.key.problem, proved.plans[self]);
  Room& room = wired.room;
  room.units = mine.shape.units;
  room.longest_units = std::max(longest_message(proved.plans), room.longest_units);
  room.overlaps = room.overlaps && proved.overlaps;
  room.balanced = room.balanced && proved.balanced;
  std::vector<LaneSpec>& specs = wired.specs.emplace_back(flags_of(mine));
  for (const LaneUse& use : uses) specs.push_back(links_.spec(use, protocol));
  TUTTI_CHECK_OK(links_.lay(wired.specs, static_cast<std::uint32_t>(wired.specs.size())));
  return wire(mine, uses, protocol, wired);
}

// On the first channel that has its order: what is on others is like it.
Status DeviceCommunicator::wire(const Plan& plan, const std::vector<LaneUse>& uses, Protocol protocol,
                                WiredPlan& wired) {
  const auto channel = static_cast<std::uint32_t>(wired.compiled.size());
  std::map<std::tuple<Place, Rank, std::uint16_t, bool>, LaneState*> ends;
  for (const LaneSpec& spec : flags_of(plan)) {
    const DeviceLinks::Wanted wanted = {.writer = spec.writer, .tag = spec.tag, .channel = channel};
    if (spec.writer == rank_) {
      LaneState*& end = ends[{Place::flag, spec.reader, spec.tag, true}];
      end = TUTTI_TRY(links_.end(spec, wanted));
    }
    if (spec.reader != rank_) continue;
    DeviceLinks::Wanted reads = wanted;
    reads.which = LaneEnd::reader;
    ends[{Place::flag, spec.writer, spec.tag, false}] = TUTTI_TRY(links_.end(spec, reads));
  }
  for (const LaneUse& use : uses) {
    const bool sends = use.direction == Direction::sends;
    const DeviceLinks::Wanted wanted = {.writer = sends ? rank_ : use.peer,
                                        .tag = use.tag,
                                        .which = sends ? LaneEnd::writer : LaneEnd::reader,
                                        .channel = channel};
    ends[{Place::lane, use.peer, use.tag, sends}] = TUTTI_TRY(links_.end(links_.spec(use, protocol), wanted));
  }
  wired.compiled.push_back(std::make_unique<CompiledPlan>(plan, [&](const Operand& operand, bool sends) -> LaneState* {
    const auto found = ends.find({operand.place, operand.peer, operand.tag, sends});
    return found == ends.end() ? nullptr : found->second;
  }));
  wired.scratch_units = std::max(wired.scratch_units, wired.compiled.back()->scratch_units());
  return {};
}

}  // namespace tutti
