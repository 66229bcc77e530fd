// Programs whose layout is known before they run: each message is one slice of one extent. Their steps are obeyed one
// after the other, from a list in which all that does not change between chunks and calls has been looked up.
#pragma once

#include "src/executor/program.h"

namespace tutti {

// An end of a lane or flag.
struct StraightLane {
  LaneState* lane = nullptr;
  const Operand* operand = nullptr;
  std::uint16_t index = 0;        // Among the step's sources or targets that have data.
  bool flag = false;              // It has none.
  bool copy = false;              // A small message that is sent from where the step's only source lies.
  std::uint16_t back = kNotBack;  // The target by which something is stored into a slot that has been read.
  static constexpr std::uint16_t kNotBack = 0xffff;
};
static_assert(sizeof(StraightLane) == 24);

struct StraightMemory {
  std::byte* const* base = nullptr;  // The place where the buffer's address is found.
  std::uint64_t offset = 0;          // Bytes behind it where the first chunk begins.
  const Operand* operand = nullptr;
  std::uint16_t index = 0;
};
static_assert(sizeof(StraightMemory) == 32);

struct StraightStep {
  std::uint32_t lanes = 0;   // The first of its lanes; those it receives from come first.
  std::uint32_t memory = 0;  // The first of its extents; those it reads come first.
  std::uint16_t receives = 0, sends = 0;
  std::uint16_t reads = 0, writes = 0;
  std::uint16_t inputs = 0, outputs = 0;  // Of the fold.
  Fold fold = Fold::partial;
  std::uint64_t count = 0;  // Elements of all chunks together,
  std::uint64_t size = 0;   // and of each but the last ones.
};
static_assert(sizeof(StraightStep) == 40);

// Null: the program is interpreted.
struct Straight {
  const std::uint32_t* stages = nullptr;  // Stage s is steps [stages[s], stages[s + 1]).
  const StraightStep* steps = nullptr;
  const StraightLane* lanes = nullptr;
  const StraightMemory* memory = nullptr;
  std::uint32_t stage_count = 0;  // 1 where a chunk runs all stages in a turn.
  bool ll = false;                // All messages are small.
};
static_assert(sizeof(Straight) == 40);

}  // namespace tutti
