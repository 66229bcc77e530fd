#include "src/plan/lanes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tutti {
namespace {

// One end of a lane.
struct End {
  Rank peer = 0;
  std::uint16_t tag = 0;
  Direction direction = Direction::sends;
  auto operator<=>(const End&) const = default;
};

// Calls visit(operand, direction, step, round) for each lane operand of the plan, in the order of steps.
template <typename Visit>
void for_each_lane(const Plan& plan, Visit visit) {
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
      const Step step = plan.steps[i];
      for (const Operand& operand : step.sources) {
        if (operand.space == Space::lane) visit(operand, Direction::receives, i, round);
      }
      for (const Operand& operand : step.targets) {
        if (operand.space == Space::lane) visit(operand, Direction::sends, i, round);
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

// The units of a block that a message holds. Messages of the same units have the same length for any counts of the
// caller. A message of other units may be empty, and empty messages are not sent.
struct UnitsOfBlock {
  std::uint32_t first = 0, count = 0, run = 0, stride = 0;
  auto operator<=>(const UnitsOfBlock&) const = default;
};

UnitsOfBlock units_of(const Step& step, std::uint32_t units, const Loop& loop) {
  if (units == 1 && loop.longest == 1) return {};  // Whole blocks: all messages are empty, or each takes a slot.
  for (const std::span<const Operand> side : {step.sources, step.targets}) {
    for (const Operand& operand : side) {
      if (!operand.is_memory()) continue;
      if (units == 1 || operand.count == 1) return {operand.first % units, operand.count, 0, 0};
      return {operand.first % units, operand.count, operand.run, operand.run < operand.count ? operand.stride : 0};
    }
  }
  return {};
}

// A message sent or received.
struct Event {
  Direction direction = Direction::sends;
  std::uint16_t tag = 0;
  std::uint32_t step = 0, stage = 0;
  std::uint32_t count = 0;
  UnitsOfBlock units;
};

// The messages of a rank on its lanes from and to one peer, in the order of its steps.
struct Traffic {
  std::vector<Event> events;
  std::uint32_t stages = 1;
};

Traffic traffic_with(const Plan& plan, Rank peer, const Loop& loop) {
  Traffic traffic{.events = {}, .stages = static_cast<std::uint32_t>(plan.shape.stages.size())};
  for_each_lane(plan, [&](const Operand& operand, Direction direction, std::uint32_t step, std::uint32_t round) {
    if (operand.peer != peer) return;
    traffic.events.push_back({.direction = direction,
                              .tag = operand.tag,
                              .step = step,
                              .stage = stage_of(plan.shape, round),
                              .count = operand.count,
                              .units = units_of(plan.steps[step], plan.shape.units, loop)});
  });
  return traffic;
}

// Returns the traffic on one sending and one receiving lane.
Traffic only(const Traffic& traffic, std::uint16_t sending, std::uint16_t receiving) {
  Traffic chosen{.events = {}, .stages = traffic.stages};
  for (const Event& event : traffic.events) {
    if (event.tag == (event.direction == Direction::sends ? sending : receiving)) chosen.events.push_back(event);
  }
  return chosen;
}

// Returns the events of all chunks in the order in which the loop executes them. The order is periodic, so a few more
// chunks than slots and stages cover all cases.
std::vector<const Event*> in_loop_order(const Traffic& traffic, const Loop& loop) {
  const std::uint32_t stages = traffic.stages;
  const std::uint32_t chunks = std::min(loop.chunks, 2 * loop.slots + 2 * stages);
  const bool reversed = loop.skew > 0 && loop.order == StageOrder::latest_first;
  std::vector<const Event*> order;
  for (std::uint32_t iteration = 0; iteration < chunks + loop.skew * (stages - 1); ++iteration) {
    for (std::uint32_t position = 0; position < stages; ++position) {
      const std::uint32_t stage = reversed ? stages - 1 - position : position;
      if (iteration < loop.skew * stage || iteration - loop.skew * stage >= chunks) continue;
      for (const Event& event : traffic.events) {
        if (event.stage == stage) order.push_back(&event);
      }
    }
  }
  return order;
}

// ---- Round trips ----

// Lanes requester -> responder with tag `request`, and back with tag `answer`.
struct RoundTrip {
  Rank requester = 0;
  std::uint16_t request = 0, answer = 0;
};

// Returns the lane on which the responder sends in the step that first receives `request`. Returns nullopt if this step
// uses other lanes of the pair too.
std::optional<std::uint16_t> answer_tag(const Traffic& responder, std::uint16_t request) {
  const std::vector<Event>& events = responder.events;
  const auto received = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.direction == Direction::receives && event.tag == request;
  });
  if (received == events.end()) return std::nullopt;
  std::optional<std::uint16_t> answer;
  for (const Event& event : events) {
    if (event.step != received->step || &event == &*received) continue;
    if (event.direction == Direction::receives || answer) return std::nullopt;
    answer = event.tag;
  }
  return answer;
}

// Returns whether every message of the one lane is answered by a message of the other in the same step.
bool answers_all(const Traffic& responder) {
  const std::vector<Event>& events = responder.events;
  for (std::size_t i = 0; i < events.size(); i += 2) {
    const bool pair = i + 1 < events.size() && events[i].direction == Direction::receives &&
                      events[i + 1].direction == Direction::sends && events[i].step == events[i + 1].step;
    if (!pair) return false;
  }
  return true;
}

// Returns whether the requester receives an answer to every message, in order and with the same length, and sends
// first.
bool takes_all_back(const Traffic& requester) {
  std::vector<std::uint32_t> requests, answers;
  for (const Event& event : requester.events) {
    (event.direction == Direction::sends ? requests : answers).push_back(event.count);
    if (answers.size() > requests.size()) return false;
  }
  return requests == answers && !requests.empty();
}

// Returns whether every slot has been returned when the requester writes it: the requester does not wait for slots.
bool has_slots_for_all_requests(const Traffic& requester, const Loop& loop) {
  std::uint32_t in_flight = 0;
  for (const Event* event : in_loop_order(requester, loop)) {
    if (event->direction == Direction::receives) --in_flight;
    else if (++in_flight * loop.longest > loop.slots) return false;
  }
  return true;
}

void add_round_trips(const Traffic& requester, const Traffic& responder, Rank rank, const Loop& loop,
                     std::vector<RoundTrip>& trips) {
  std::set<std::uint16_t> requests;
  for (const Event& event : requester.events) {
    if (event.direction == Direction::sends) requests.insert(event.tag);
  }
  for (const std::uint16_t tag : requests) {
    const auto answer = answer_tag(responder, tag);
    if (!answer || !answers_all(only(responder, *answer, tag))) continue;
    const Traffic both = only(requester, tag, *answer);
    if (takes_all_back(both) && has_slots_for_all_requests(both, loop)) trips.push_back({rank, tag, *answer});
  }
}

// ---- Swaps ----

// Returns whether a rank that sends the k-th message of this tag has already received the (k - slots)-th, and thus owns
// the slot of that message. The rank must also receive as many messages as it sends, so that the next operation starts
// from the same state. Both conditions must hold for any subset of units, since some may be empty.
bool sends_into_what_it_read(const Traffic& all, std::uint16_t tag, const Loop& loop) {
  const Traffic traffic = only(all, tag, tag);
  for (std::size_t i = 1; i < traffic.events.size(); ++i) {
    // The step would write the slot that it reads.
    if (traffic.events[i].step == traffic.events[i - 1].step) return false;
  }
  std::map<UnitsOfBlock, std::int64_t> ahead;  // Messages sent minus messages received.
  std::int64_t max = 0;                        // Maximum of messages ahead, whichever units are empty.
  for (const Event* event : in_loop_order(traffic, loop)) {
    std::int64_t& mine = ahead[event->units];
    max -= std::max<std::int64_t>(mine, 0);
    mine += event->direction == Direction::sends ? 1 : -1;
    max += std::max<std::int64_t>(mine, 0);
    if (max * loop.longest > loop.slots) return false;
  }
  return !ahead.empty() && std::all_of(ahead.begin(), ahead.end(), [](const auto& entry) { return entry.second == 0; });
}

// ---- Both ----

// The forms of all lanes between two ranks. Both ranks compute the same forms.
class Forms {
 public:
  Forms(const Plan& mine, const Plan& theirs, const Loop& loop)
      : self_(mine.steps.self()),
        peer_(theirs.steps.self()),
        mine_(traffic_with(mine, peer_, loop)),
        theirs_(traffic_with(theirs, self_, loop)),
        loop_(loop) {
    add_round_trips(mine_, theirs_, self_, loop, trips_);
    add_round_trips(theirs_, mine_, peer_, loop, trips_);
  }

  void choose(LaneUse& use) const {
    const Rank writer = use.direction == Direction::sends ? self_ : peer_;
    const auto names = [&](const RoundTrip& trip) {
      return use.tag == (trip.requester == writer ? trip.request : trip.answer);
    };
    const auto trip = std::find_if(trips_.begin(), trips_.end(), names);
    if (trip != trips_.end()) {
      if (shares_a_lane(*trip)) return;
      use.form = LaneForm::round_trip;
      use.answers = trip->requester != writer;
      use.partner_tag = use.answers ? trip->request : trip->answer;
    } else if (swaps(use.tag)) {
      use.form = LaneForm::swap;
      use.partner_tag = use.tag;
    }
  }

 private:
  // Returns whether an answer is itself answered: its lane cannot belong to both pairs.
  bool shares_a_lane(const RoundTrip& trip) const {
    return std::any_of(trips_.begin(), trips_.end(), [&](const RoundTrip& other) {
      return other.requester != trip.requester && (other.request == trip.answer || other.answer == trip.request);
    });
  }

  bool swaps(std::uint16_t tag) const {
    const bool taken = std::any_of(trips_.begin(), trips_.end(),
                                   [&](const RoundTrip& trip) { return trip.request == tag || trip.answer == tag; });
    return !taken && sends_into_what_it_read(mine_, tag, loop_) && sends_into_what_it_read(theirs_, tag, loop_);
  }

  Rank self_, peer_;
  Traffic mine_, theirs_;
  const Loop loop_;
  std::vector<RoundTrip> trips_;
};

}  // namespace

std::vector<LaneUse> lanes_of(std::span<const Plan> plans, Rank self, const Loop& loop) {
  std::vector<LaneUse> uses = uses_of(plans[self]);
  std::optional<Forms> forms;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Rank peer = uses[i].peer;
    if (peer == self) continue;
    if (i == 0 || uses[i - 1].peer != peer) forms.emplace(plans[self], plans[peer], loop);  // Uses are sorted by peer.
    forms->choose(uses[i]);
  }
  return uses;
}

std::uint32_t longest_message(std::span<const Plan> plans) {
  std::uint32_t longest = 0;
  bool lanes = false;
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      for (const std::span<const Operand> side : {step.sources, step.targets}) {
        for (const Operand& operand : side) {
          longest = std::max(longest, operand.count);
          lanes = lanes || operand.space == Space::lane;
        }
      }
    }
  }
  return lanes ? longest : 0;
}

}  // namespace tutti
