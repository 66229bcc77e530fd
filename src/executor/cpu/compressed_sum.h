// Sums of compressed messages and of float32 in memory, group by group in registers: decode, add, encode and store
// without a buffer.
#pragma once

#include "src/compression/codec.h"
#include "src/executor/cpu/fold.h"

namespace tutti {

// Which operands of a fold are compressed messages: one byte per operand, 0 for memory.
struct Encoded {
  const std::uint8_t* sources = nullptr;
  const std::uint8_t* targets = nullptr;
  const Dither* dither = nullptr;        // At the first element; null: round to nearest.
  float* quantization_errors = nullptr;  // Accumulates quantization errors per element; null: discarded.
};

struct CompressedSumArguments {
  const FoldArguments& fold;  // Whole groups, unscaled.
  const Encoded& encoded;     // Rounds to nearest, without error feedback.
  GroupRange range;
  bool divides = false;   // By fold.ranks.
  bool kept = false;      // Memory targets receive the decoded message.
  bool forwards = false;  // The caller writes the message targets.
};

}  // namespace tutti
