// Kernels, one source file per instruction set.
#pragma once

#include "src/executor/cpu/fold.h"

namespace tutti {

CompressedSumFunction find_compressed_sum_baseline(CompressionFormat format);
CompressedSumFunction find_compressed_sum_avx2(CompressionFormat format);
CompressedSumFunction find_compressed_sum_avx512(CompressionFormat format);

extern const FoldKernels kFoldBaseline;
extern const FoldKernels kFoldAvx2;    // x86 only.
extern const FoldKernels kFoldAvx512;  // x86 only.

}  // namespace tutti
