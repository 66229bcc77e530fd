// Baseline instructions: 128-bit GNU vectors.
#include "src/base/vector_baseline.h"
#include "src/executor/cpu/compressed_sum_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

CompressedSumFunction find_compressed_sum_baseline(CompressionFormat format) {
  return find_compressed_sum_in<Baseline>(format);
}

}  // namespace tutti
