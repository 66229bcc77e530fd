// Multicast through NVSwitches: data that switches reduce or distribute crosses each link once.
#include <algorithm>

#include "src/plan/plan.h"
#include "tools/simulator/program.h"
#include "tools/simulator/simulated_lanes.h"

namespace tutti::simulator {
namespace {

// True if a step of the root has such an operand. It has one if any rank has.
template <typename Is>
bool any_operand(const Algorithm& algorithm, const Problem& problem, Is is) {
  const Plan plan = emit_plan(algorithm, problem, problem.root);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    if (std::ranges::any_of(step.sources, is) || std::ranges::any_of(step.targets, is)) return true;
  }
  return false;
}

}  // namespace

bool names_all(const Algorithm& algorithm, const Problem& problem) {
  return any_operand(algorithm, problem, [](const Operand& operand) { return operand.is_of_several(); });
}

bool names_hosts(const Algorithm& algorithm, const Problem& problem) {
  return any_operand(algorithm, problem,
                     [](const Operand& operand) { return operand.is_of_several() && operand.peer == kAllOfHost; });
}

// Switches process data while it arrives, so a sum begins to leave the switch when its operands begin to leave their
// ranks.

double SimulatedLanes::gather(std::span<const End> sources, double bytes) {
  double finish = timeline_.now;
  const Lane* reader = nullptr;
  for (const End end : sources) {
    if (end.kind() != EndKind::read) continue;
    const Lane& lane = lanes_[end.lane()];
    reader = &lane;
    pass(lane, 0, lane.own, {timeline_.now, bytes}, finish);
    data_bytes_ += bytes;
  }
  if (reader != nullptr)
    pass(*reader, reader->own, std::size_t{reader->own} + reader->others, {timeline_.now, bytes}, finish);
  return finish;
}

double SimulatedLanes::spread(std::span<const End> targets, double bytes) {
  double finish = timeline_.now;
  bool sent = false;
  for (const End end : targets) {
    if (end.kind() != EndKind::write) continue;
    const Lane& lane = lanes_[end.lane()];
    if (!sent) {
      pass(lane, 0, lane.own, {timeline_.now, bytes}, finish);
      data_bytes_ += bytes;
      sent = true;
    }
    pass(lane, lane.own, std::size_t{lane.own} + lane.others, {timeline_.now, bytes}, finish);
  }
  return finish;
}

}  // namespace tutti::simulator
