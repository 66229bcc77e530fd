// Sums of messages in a compression format and of float32 in memory, a group at a time in registers: decoded, added,
// encoded and stored with no way through memory between.
#pragma once

#include "src/compression/codec.h"
#include "src/executor/cpu/fold.h"

namespace tutti {

// Which operands of a fold are messages: one byte for each, 0 for memory.
struct Encoded {
  const std::uint8_t* sources = nullptr;
  const std::uint8_t* targets = nullptr;
  const Dither* dither = nullptr;  // Of the first element; null: to nearest.
  float* losses = nullptr;         // Where what encoding takes from each element is added; null: nowhere.
};

struct CompressedSumArguments {
  const FoldArguments& fold;  // Of whole groups; nothing of it is scaled.
  const Encoded& encoded;     // To nearest, and losses are nobody's.
  GroupRange range;
  bool divides = false;   // By fold.ranks.
  bool kept = false;      // Memory gets what messages mean.
  bool forwards = false;  // Targets that are messages have theirs.
};

}  // namespace tutti
