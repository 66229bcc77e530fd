// Data that enters and leaves a step, and the number of slices for steps in peers' memory.
#pragma once

#include <cstdint>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

struct Ends {
  std::uint32_t in = 0, out = 0;  // That carry bytes.
  std::uint32_t mapped = 0;       // Ends in memory of peers.
  std::uint32_t sent = 0;         // By lanes.
};
Ends ends_of(const Program& program, const TimedStep& step);

inline bool by_switches(const TimedStep& step) { return step.gathered || step.spread; }

// Slices of a step in peers' memory. All operands are accessed side by side, slice by slice, as messages are sent
// in chunks, so that none occupies the links alone.
std::uint32_t slices_of(const TimedStep& step, const EngineRequest& request);

}  // namespace tutti::simulator
