// AVX2 and F16C.
#include "src/base/vector_avx2.h"
#include "src/compression/packing_x86.h"
#include "src/executor/cpu/compressed_sum_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

CompressedSumFunction find_compressed_sum_avx2(CompressionFormat format) {
  return find_compressed_sum_in<Avx2>(format);
}

}  // namespace tutti
