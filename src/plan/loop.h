// How a plan is run: the tuner's choice, not the algorithm's. On every rank and channel:
//   for turn: for stage (in `order`): chunk = turn - skew * stage: for round: for slice: for step
#pragma once

#include <cstdint>

namespace tutti {

// Of a skewed loop; without skew the stages of a chunk follow each other.
enum class StageOrder : std::uint8_t {
  latest_first,    // Drains before it fills: needs the fewest slots.
  earliest_first,  // Fills before it drains: gives a message a turn more to arrive, for one slot more. The tuner's
                   // choice.
};

struct Loop {
  std::uint32_t chunks = 1;  // The plan runs once per chunk of every unit.
  std::uint32_t skew = 0;    // Turns by which a stage is behind the one before. 0: a chunk runs all stages in a turn.
  StageOrder order = StageOrder::latest_first;
  std::uint32_t slots = 1;    // Per lane.
  std::uint32_t longest = 1;  // Slots that the longest message takes.
};

}  // namespace tutti
