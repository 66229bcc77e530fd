#include "src/plan/lanes.h"

#include <algorithm>

namespace tutti {
namespace {

// One end of a lane.
struct End {
  Rank peer = 0;
  std::uint16_t tag = 0;
  Direction direction = Direction::sends;
  auto operator<=>(const End&) const = default;
};

End end_of(const Operand& lane, Direction direction) { return {lane.peer, lane.tag, direction}; }

// Calls visit(operand, direction, step, round) for each lane operand of the plan, in the order of the steps.
template <typename Visit>
void for_each_lane(const Plan& plan, Visit visit) {
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
      const Step step = plan.steps[i];
      for (const Operand& operand : step.sources) {
        if (operand.place == Place::lane) visit(operand, Direction::receives, i, round);
      }
      for (const Operand& operand : step.targets) {
        if (operand.place == Place::lane) visit(operand, Direction::sends, i, round);
      }
    }
  }
}

std::uint32_t stage_of(const Shape& shape, std::uint32_t round) {
  const auto after = std::upper_bound(shape.stages.begin(), shape.stages.end(), round);
  return static_cast<std::uint32_t>(after - shape.stages.begin()) - 1;
}

std::vector<LaneUse> uses_of(const Plan& plan) {
  std::vector<LaneUse> uses;
  for_each_lane(plan, [&](const Operand& operand, Direction direction, std::uint32_t, std::uint32_t round) {
    uses.push_back({.peer = operand.peer,
                    .tag = operand.tag,
                    .direction = direction,
                    .form = LaneForm::one_way,
                    .partner_tag = 0,
                    .answers = false,
                    .messages = 1,
                    .longest = operand.count,
                    .stage = stage_of(plan.shape, round)});
  });
  const auto key = [](const LaneUse& use) { return End{use.peer, use.tag, use.direction}; };
  std::stable_sort(uses.begin(), uses.end(), [&](const LaneUse& a, const LaneUse& b) { return key(a) < key(b); });
  std::vector<LaneUse> merged;
  for (const LaneUse& use : uses) {
    if (merged.empty() || key(merged.back()) != key(use)) {
      merged.push_back(use);
      continue;
    }
    ++merged.back().messages;
    merged.back().longest = std::max(merged.back().longest, use.longest);
  }
  return merged;
}

// What happens at one end of a lane, in the order of the steps.
struct Event {
  Direction direction;
  std::uint32_t step, stage, count;
};

std::vector<Event> events_of(const Plan& plan, const End& sends, const End& receives) {
  std::vector<Event> events;
  for_each_lane(plan, [&](const Operand& operand, Direction direction, std::uint32_t step, std::uint32_t round) {
    const End end = end_of(operand, direction);
    if (end == sends || end == receives)
      events.push_back({direction, step, stage_of(plan.shape, round), operand.count});
  });
  return events;
}

constexpr std::int32_t kNoTag = -1;

// The one lane to `peer` among these operands.
std::int32_t tag_of_lane(std::span<const Operand> operands, Rank peer) {
  std::int32_t tag = kNoTag;
  for (const Operand& operand : operands) {
    if (operand.place != Place::lane || operand.peer != peer) continue;
    if (tag != kNoTag) return kNoTag;
    tag = operand.tag;
  }
  return tag;
}

// The lane on which the first step that receives `peer`'s lane `tag` sends back.
std::int32_t answering_tag(const Plan& plan, Rank peer, std::uint16_t tag) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    if (tag_of_lane(step.sources, peer) == tag) return tag_of_lane(step.targets, peer);
  }
  return kNoTag;
}

// Whether the lane peer -> self, tag `asking`, makes round trips by the lane self -> peer, tag `answering`: every
// message of one is answered by one of the other in the same step, and the asker has as many of both, of equal
// lengths, asking first.
bool makes_round_trips(const Plan& answerer, const Plan& asker, std::uint16_t asking, std::uint16_t answering) {
  const Rank self = answerer.steps.self();
  const Rank peer = asker.steps.self();
  const std::vector<Event> here =
      events_of(answerer, {peer, answering, Direction::sends}, {peer, asking, Direction::receives});
  for (std::size_t i = 0; i < here.size(); i += 2) {
    const bool pair = i + 1 < here.size() && here[i].direction == Direction::receives &&
                      here[i + 1].direction == Direction::sends && here[i].step == here[i + 1].step;
    if (!pair) return false;
  }
  std::vector<std::uint32_t> asked, answered;
  for (const Event& event :
       events_of(asker, {self, asking, Direction::sends}, {self, answering, Direction::receives})) {
    (event.direction == Direction::sends ? asked : answered).push_back(event.count);
    if (answered.size() > asked.size()) return false;
  }
  return asked == answered && !asked.empty();
}

// The tag of the answers to the asker's lane `asking`, if it makes round trips.
std::int32_t round_trip_tag(const Plan& answerer, const Plan& asker, std::uint16_t asking) {
  const std::int32_t answering = answering_tag(answerer, asker.steps.self(), asking);
  if (answering == kNoTag) return kNoTag;
  return makes_round_trips(answerer, asker, asking, static_cast<std::uint16_t>(answering)) ? answering : kNoTag;
}

// What a loop makes of the events of one piece: all pieces' events in the order of obedience. The order repeats, so
// that a few more pieces than slots and stages show all there is.
std::vector<Direction> in_loop_order(const std::vector<Event>& events, std::uint32_t stages, const Loop& loop) {
  const std::uint32_t pieces = std::min(loop.pieces, 2 * loop.slots + 2 * stages);
  std::vector<Direction> order;
  for (std::uint32_t turn = 0; turn < pieces + loop.skew * (stages - 1); ++turn) {
    for (std::uint32_t position = 0; position < stages; ++position) {
      const bool reversed = loop.skew > 0 && loop.order == StageOrder::latest_first;
      const std::uint32_t stage = reversed ? stages - 1 - position : position;
      if (turn < loop.skew * stage || turn - loop.skew * stage >= pieces) continue;
      for (const Event& event : events) {
        if (event.stage == stage) order.push_back(event.direction);
      }
    }
  }
  return order;
}

// Whether a rank, when it sends the k-th message of the pair's lanes of this tag, has received the (k - slots)-th: it
// then owns the slot where that lay. It receives as many as it sends, so that the next operation begins alike.
bool sends_into_what_it_read(const Plan& plan, Rank peer, std::uint16_t tag, const Loop& loop) {
  const std::vector<Event> events = events_of(plan, {peer, tag, Direction::sends}, {peer, tag, Direction::receives});
  if (events.empty() || loop.strands) return false;
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (events[i].step == events[i - 1].step) return false;  // It would write what it is reading.
  }
  std::uint32_t ahead = 0;
  std::uint32_t behind = 0;
  for (const Direction direction : in_loop_order(events, static_cast<std::uint32_t>(plan.shape.stages.size()), loop)) {
    if (direction == Direction::receives) {
      behind += ahead == 0;
      ahead -= ahead > 0;
      continue;
    }
    behind -= behind > 0;
    if (behind == 0 && ++ahead > loop.slots) return false;
  }
  return ahead == 0 && behind == 0;
}

void choose_form(LaneUse& use, const Plan& mine, const Plan& theirs, const Loop& loop) {
  const Plan& writer = use.direction == Direction::sends ? mine : theirs;
  const Plan& reader = use.direction == Direction::sends ? theirs : mine;
  const auto pair = [&](LaneForm form, std::uint16_t partner, bool answers) {
    use.form = form;
    use.partner_tag = partner;
    use.answers = answers;
  };
  // As the asking lane: its reader answers. As the answering one: its writer answers some lane of the reader.
  const std::int32_t answer = round_trip_tag(reader, writer, use.tag);
  if (answer != kNoTag) return pair(LaneForm::round_trip, static_cast<std::uint16_t>(answer), false);
  for (const LaneUse& other : uses_of(reader)) {
    if (other.peer != writer.steps.self() || other.direction != Direction::sends) continue;
    if (round_trip_tag(writer, reader, other.tag) == use.tag) return pair(LaneForm::round_trip, other.tag, true);
  }
  if (sends_into_what_it_read(mine, use.peer, use.tag, loop) &&
      sends_into_what_it_read(theirs, mine.steps.self(), use.tag, loop)) {
    pair(LaneForm::swap, use.tag, false);
  }
}

}  // namespace

std::vector<LaneUse> lanes_of(std::span<const Plan> plans, Rank self, const Loop& loop) {
  std::vector<LaneUse> uses = uses_of(plans[self]);
  for (LaneUse& use : uses) {
    if (use.peer != self) choose_form(use, plans[self], plans[use.peer], loop);
  }
  return uses;
}

}  // namespace tutti
