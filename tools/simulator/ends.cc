#include "tools/simulator/ends.h"

#include <algorithm>
#include <cmath>

namespace tutti::simulator {
namespace {

constexpr double kMaxSlices = 64;
constexpr double kMaxOfSwitches =
    4096;  // More than kMaxSlices, since each slice is two transfers for any number of ranks.

}  // namespace

Ends ends_of(const Program& program, const TimedStep& step) {
  Ends ends;
  for (std::uint32_t i = step.first; i < step.first + step.sources + step.targets; ++i) {
    const EndKind kind = program.ends[i].kind();
    ends.in += kind == EndKind::receive || kind == EndKind::read ? 1 : 0;
    ends.out += kind == EndKind::send || kind == EndKind::write ? 1 : 0;
    ends.mapped += kind == EndKind::read || kind == EndKind::write ? 1 : 0;
    ends.sent += kind == EndKind::send ? 1 : 0;
  }
  return ends;
}

std::uint32_t slices_of(const TimedStep& step, const EngineRequest& request) {
  if (request.slice_bytes == 0) return 1;
  const double slices = std::ceil(step.units * request.unit_bytes / request.slice_bytes);
  return static_cast<std::uint32_t>(std::clamp(slices, 1.0, by_switches(step) ? kMaxOfSwitches : kMaxSlices));
}

std::uint64_t events_of(const Program& program, const EngineRequest& request) {
  std::uint64_t events = (program.steps.size() + program.messages) * request.parts;
  if (!program.sliceable) {
    events = 0;
    for (const TimedStep& step : program.steps) {
      const Ends ends = ends_of(program, step);
      events += (ends.mapped > 0 ? slices_of(step, request) + (by_switches(step) ? 1 : 0) : 1) + ends.sent;
    }
  }
  return events * request.chunks;
}

}  // namespace tutti::simulator
