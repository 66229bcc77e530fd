// Number of operands of a step by kind, and number of slices of steps in peers' memory.
#pragma once

#include <cstdint>

#include "tools/simulator/engine.h"

namespace tutti::simulator {

struct Ends {
  std::uint32_t in = 0, out = 0;  // Ends that carry data, without flags.
  std::uint32_t mapped = 0;       // Ends in memory of peers.
  std::uint32_t sent = 0;         // Ends that send to lanes.
};
Ends ends_of(const Program& program, const TimedStep& step);

inline bool by_switches(const TimedStep& step) { return step.gathered || step.spread; }

// Returns the number of slices of a step in peers' memory. The step accesses all operands slice by slice, so that none
// of them occupies the links for long.
std::uint32_t slices_of(const TimedStep& step, const EngineRequest& request);

}  // namespace tutti::simulator
