// Straight programs: the layout is known in advance, because each message is one slice of one extent. The steps run in
// order, from a list in which everything that is constant between chunks and calls is resolved.
#pragma once

#include "src/executor/program.h"

namespace tutti {

// One end of a lane or flag.
struct StraightLane {
  LaneState* lane = nullptr;
  const Operand* operand = nullptr;
  std::uint16_t index = 0;        // Among the step's sources or targets with data. copy: among its extents.
  bool flag = false;              // A flag, without data.
  bool copy = false;              // An LL message that is copied from or to an extent, without a fold.
  std::uint16_t back = kNotBack;  // Target that stores back into the received slot.
  std::uint16_t units = 1;        // Units of a message: operands index, index + 1, ..., or one of each fold.
  static constexpr std::uint16_t kNotBack = 0xffff;
};
static_assert(sizeof(StraightLane) == 24);

struct StraightMemory {
  std::byte* const* base = nullptr;  // Where the buffer address is stored.
  std::uint64_t offset = 0;          // Byte offset of the first chunk.
  const Operand* operand = nullptr;
  std::uint16_t index = 0;
  bool reused = false;  // Scratch that chunks reuse.
};
static_assert(sizeof(StraightMemory) == 32);

struct StraightStep {
  std::uint32_t lanes = 0;   // Index of its first lane; receiving lanes precede sending ones.
  std::uint32_t memory = 0;  // Index of its first extent; extents read precede those written.
  std::uint16_t receives = 0, sends = 0;
  std::uint16_t reads = 0, writes = 0;
  std::uint16_t inputs = 0, outputs = 0;  // Operands of a fold.
  Fold fold = Fold::partial;
  bool copies = false;      // Extent or message k is copied to message or extent k, all k at once.
  bool in_order = false;    // The ends of its receiving lanes follow each other, as do those of its sending ones.
  std::uint8_t folds = 1;   // Independent folds: operand i of fold k has index k * inputs + i, or k * outputs + i.
  std::uint64_t count = 0;  // Elements of all chunks together.
  std::uint64_t size = 0;   // Elements of each chunk but the last ones.
};
static_assert(sizeof(StraightStep) == 40);

// Null pointers: the program is interpreted.
struct Straight {
  const std::uint32_t* stages = nullptr;  // Stage s is steps [stages[s], stages[s + 1]).
  const StraightStep* steps = nullptr;
  const StraightLane* lanes = nullptr;
  const StraightMemory* memory = nullptr;
  std::uint32_t stage_count = 0;  // 1 if a chunk runs all stages in one iteration.
  bool ll = false;                // All messages use LL.
};
static_assert(sizeof(Straight) == 40);

}  // namespace tutti
