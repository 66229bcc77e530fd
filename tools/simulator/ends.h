// What passes at the ends of a step, and in how many slices where that is memory of peers.
#pragma once

#include <cstdint>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

struct Ends {
  std::uint32_t in = 0, out = 0;  // That carry bytes.
  std::uint32_t mapped = 0;       // Of these, in memory of peers.
  std::uint32_t sent = 0;         // By lanes.
};
Ends ends_of(const Program& program, const TimedStep& step);

inline bool by_switches(const TimedStep& step) { return step.gathered || step.spread; }

// Of a step in peers' memory: all its operands are read and written side by side, slice by slice, as messages go in
// chunks, so that none of them has the links for itself.
std::uint32_t slices_of(const TimedStep& step, const EngineRequest& request);

}  // namespace tutti::simulator
