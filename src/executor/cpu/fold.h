// Folds sources into targets on a CPU, with the widest instructions this CPU has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/types.h"
#include "src/compression/format.h"
#include "src/executor/cpu/cache_policy.h"

namespace tutti {

struct FoldArguments {
  static constexpr std::uint32_t kNone = 0xffffffff;

  const std::byte* const* sources = nullptr;
  std::byte* const* targets = nullptr;  // Each equal to a source (in place) or disjoint from all.
  std::uint32_t source_count = 0;       // At least one.
  std::uint32_t target_count = 0;
  std::uint64_t count = 0;  // Elements.

  std::uint32_t own = kNone;  // pre_mul_sum: the source to be scaled as it is read; kNone: no one.
  bool complete = false;      // avg: the result is divided by `ranks`.
  std::uint32_t ranks = 1;
  double scale = 1;  // pre_mul_sum of floats; integers take `integer_scale`.
  std::int64_t integer_scale = 1;

  CachePolicy cache_policy = {};

  // Sources that are fetched ahead, beyond their end, too: more of the same buffer will follow. Bit i is the i-th
  // source.
  std::uint64_t fetched_sources = 0;

  // Targets written past the caches: large outputs that will not be read again soon. Bit i is the i-th target; those
  // beyond the 64th are ordinary ones.
  std::uint64_t streamed_targets = 0;
};

// ((s0 op s1) op s2) ..., accumulated in float32 for floats of 16 and 8 bits and rounded once; the result goes to every
// target. One source: a copy of its bits, unless it is scaled or divided. Where numbers were combined, NaN is always
// the same NaN, and the bits are those of every other instruction set.
using FoldFunction = void (*)(const FoldArguments&);
FoldFunction find_fold(DataType type, Reduction reduction);

// With messages in a compression format among the operands: see compressed_sum.h.
struct CompressedSumArguments;
using CompressedSumFunction = void (*)(const CompressedSumArguments&);

// The kernels are compiled once for each of these; find_fold() takes the last that this CPU runs.
struct FoldKernels {
  const char* name;  // "avx2"
  FoldFunction (*find_fold)(DataType, Reduction);
  CompressedSumFunction (*find_compressed_sum)(CompressionFormat);
};
struct FoldKernelList {
  const FoldKernels* first;
  std::uint32_t count;
};
FoldKernelList fold_kernels();
const FoldKernels& widest_fold_kernels();

}  // namespace tutti
