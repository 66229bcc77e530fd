// AVX-512 with F, BW, VL and DQ.
#include "src/base/vector_avx512.h"
#include "src/executor/cpu/fold_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

const FoldKernels kFoldAvx512 = {"avx512", find_fold_in<Avx512>, find_compressed_sum_avx512};

}  // namespace tutti
