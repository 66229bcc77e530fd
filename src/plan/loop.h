// Loop parameters with which a plan is executed. The tuner chooses them, not the algorithm. On every rank and channel:
//   for iteration: for stage (in `order`): chunk = iteration - skew * stage: for round: for slice: for step
#pragma once

#include <cstdint>

namespace tutti {

// Order of stages in an iteration of a skewed loop. Without skew, the stages of a chunk run one after the other.
enum class StageOrder : std::uint8_t {
  latest_first,  // Drains before it fills: needs the fewest slots.
  // Fills before it drains: a message has one iteration more to arrive, for one more slot. The tuner uses this order.
  earliest_first,
};

struct Loop {
  std::uint32_t chunks = 1;  // The plan runs once per chunk of every unit.
  // Iterations by which a stage runs behind the previous one. 0: a chunk runs all stages in one iteration.
  std::uint32_t skew = 0;
  StageOrder order = StageOrder::latest_first;
  // Chunks after which scratch is reused: chunk k has the scratch of chunk k % ring. 0: each chunk has its own.
  std::uint32_t ring = 0;
  std::uint32_t slots = 1;    // Slots per lane.
  std::uint32_t longest = 1;  // Slots that the longest message takes.
};

}  // namespace tutti
