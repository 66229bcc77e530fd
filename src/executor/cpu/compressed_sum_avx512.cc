// AVX-512 with F, BW, VL and DQ.
#include "src/base/vector_avx512.h"
#include "src/compression/packing_x86.h"
#include "src/executor/cpu/compressed_sum_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

CompressedSumFunction find_compressed_sum_avx512(CompressionFormat format) {
  return find_compressed_sum_in<Avx512>(format);
}

}  // namespace tutti
