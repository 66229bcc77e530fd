// Reduces sources into targets on a CPU, with the widest available instructions.
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
  std::byte* const* targets = nullptr;  // Each equals a source (in place) or overlaps none.
  std::uint32_t source_count = 0;       // At least 1.
  std::uint32_t target_count = 0;
  std::uint64_t count = 0;  // Elements.

  std::uint32_t own = kNone;  // pre_mul_sum: index of the source to scale when it is read; kNone: no source.
  bool complete = false;      // avg: divide the result by `ranks`.
  std::uint32_t ranks = 1;
  double scale = 1;  // pre_mul_sum of floats and, with `imaginary_scale`, complex numbers.
  double imaginary_scale = 0;
  std::int64_t integer_scale = 1;  // pre_mul_sum of integers.

  CachePolicy cache_policy = {};

  // Bit mask of sources to prefetch, also beyond their end, because the following chunk continues in the same buffer.
  std::uint64_t fetched_sources = 0;

  // Bit mask of targets to write with non-temporal stores: large outputs that are not read soon. Targets from the 64th
  // on are always written normally.
  std::uint64_t streamed_targets = 0;
};

// Computes ((s0 op s1) op s2) ... and stores the result to every target. 16-bit and 8-bit floats are accumulated in
// float32 and rounded once. A single source is copied bit by bit unless it is scaled or divided. Computed NaNs are
// canonical. Results are bit-identical on all instruction sets.
using FoldFunction = void (*)(const FoldArguments&);
FoldFunction find_fold(DataType type, Reduction reduction);  // The type must support the reduction.

// Counterpart for operands with compressed messages; see compressed_sum.h.
struct CompressedSumArguments;
using CompressedSumFunction = void (*)(const CompressedSumArguments&);

// Kernels, compiled once per instruction set. find_fold() uses the last set that this CPU supports.
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
