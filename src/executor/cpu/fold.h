// Folds sources into targets on a CPU, with the widest instructions this CPU has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/types.h"

namespace tutti {

// Which stores write targets: streaming ones bypass the caches, for outputs that will not be read again soon.
enum class Stores : std::uint8_t { ordinary, streaming };

struct FoldArguments {
  static constexpr std::uint32_t kNone = 0xffffffff;

  const std::byte* const* sources = nullptr;
  std::byte* const* targets = nullptr;     // Each equal to a source (in place) or disjoint from all.
  std::uint32_t source_count = 0;
  std::uint32_t target_count = 0;
  std::uint64_t count = 0;                 // Elements.
  std::uint32_t own = kNone;               // pre_mul_sum: the source to be scaled as it is read; kNone: no one.
  bool complete = false;                   // avg: the result is divided by `ranks`.
  Stores stores = Stores::ordinary;
  std::uint32_t ranks = 1;
  double scale = 1;                        // pre_mul_sum of floats; integers take `integer_scale`.
  std::int64_t integer_scale = 1;
};

// ((s0 op s1) op s2) ..., accumulated in float32 for floats of 16 and 8 bits and rounded once; the result goes to every
// target. One source: a copy.
using FoldFunction = void (*)(const FoldArguments&);
FoldFunction find_fold(DataType type, Reduction reduction);
// Copies `count` bytes, whatever they are.
FoldFunction find_copy();

}  // namespace tutti
