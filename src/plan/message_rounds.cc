#include "src/plan/message_rounds.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace tutti {
namespace {

// A message or signal that a rank sends or receives.
struct RoundEvent {
  Rank from = 0, to = 0;
  std::uint16_t tag = 0;
  bool flag = false, received = false;
  std::uint32_t round = 0, stage = 0;

  auto path() const { return std::tuple(flag, from, to, tag); }
};

std::vector<RoundEvent> round_events_of(std::span<const Plan> plans) {
  std::vector<RoundEvent> events;
  const auto add = [&](const Operand& operand, RoundEvent event) {
    if (operand.is_memory()) return;
    event.flag = operand.space == Space::flag;
    event.tag = operand.tag;
    (event.received ? event.from : event.to) = operand.peer;
    events.push_back(event);
  };
  for (const Plan& plan : plans) {
    const Rank self = plan.steps.self();
    std::uint32_t stage = 0;
    for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
      while (stage + 1 < plan.shape.stages.size() && plan.shape.stages[stage + 1] <= round) ++stage;
      for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
        for (const Operand& operand : plan.steps[i].sources)
          add(operand, {.to = self, .received = true, .round = round, .stage = stage});
        for (const Operand& operand : plan.steps[i].targets)
          add(operand, {.from = self, .round = round, .stage = stage});
      }
    }
  }
  return events;
}

// The events of each lane and flag follow each other, those of its sender first.
void sort_by_path(std::vector<RoundEvent>& events) {
  std::ranges::stable_sort(events, {},
                           [](const RoundEvent& event) { return std::tuple(event.path(), event.received); });
}

// A round of the loop: rounds of later stages follow in an iteration.
struct LoopRound {
  std::uint32_t iteration = 0, round = 0;
  auto operator<=>(const LoopRound&) const = default;
};

// The events of one end, of all chunks, in the order of the loop.
std::vector<LoopRound> times_of(std::span<const RoundEvent> events, std::uint32_t chunks, std::uint32_t skew) {
  std::vector<LoopRound> times;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
    for (const RoundEvent& event : events) times.push_back({chunk + skew * event.stage, event.round});
  std::ranges::sort(times);
  return times;
}

bool crosses_rounds(std::span<const RoundEvent> sent, std::span<const RoundEvent> received, const Loop& loop,
                    std::uint32_t chunks) {
  const std::vector<LoopRound> sends = times_of(sent, chunks, loop.skew),
                               receives = times_of(received, chunks, loop.skew);
  if (sends.size() != receives.size()) return false;
  for (std::size_t k = 0; k < sends.size(); ++k) {
    if (sent.front().flag) {
      if (receives[k] < sends[k]) return false;
      continue;
    }
    if (receives[k] <= sends[k]) return false;
    if (k + loop.slots < sends.size() && sends[k + loop.slots] <= receives[k]) return false;
  }
  return true;
}

bool all_cross_rounds(std::span<const RoundEvent> events, const Loop& loop, std::uint32_t stages) {
  // Times repeat with each chunk once all slots are in use, and all stages.
  const std::uint32_t chunks = loop.slots + 2 * stages * (loop.skew + 1);
  while (!events.empty()) {
    const auto differs = [&](const RoundEvent& event) { return event.path() != events.front().path(); };
    const auto end = std::ranges::find_if(events, differs);
    const auto of_path = events.first(static_cast<std::size_t>(end - events.begin()));
    const auto receives = std::ranges::find_if(of_path, &RoundEvent::received);
    const auto sends = of_path.first(static_cast<std::size_t>(receives - of_path.begin()));
    if (!crosses_rounds(sends, of_path.subspan(sends.size()), loop, chunks)) return false;
    events = events.subspan(of_path.size());
  }
  return true;
}

}  // namespace

bool messages_cross_rounds(std::span<const Plan> plans, const Loop& loop) {
  if (loop.skew > 0 && loop.order == StageOrder::latest_first) return false;
  std::vector<RoundEvent> events = round_events_of(plans);
  if (std::ranges::all_of(events, &RoundEvent::flag)) return true;
  sort_by_path(events);
  const auto stages = static_cast<std::uint32_t>(plans[0].shape.stages.size());
  Loop without_skew = loop;
  without_skew.skew = 0;
  return all_cross_rounds(events, without_skew, stages) && (loop.skew == 0 || all_cross_rounds(events, loop, stages));
}

}  // namespace tutti
