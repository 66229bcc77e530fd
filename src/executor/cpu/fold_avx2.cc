// AVX2 and F16C.
#include "src/base/vector_avx2.h"
#include "src/executor/cpu/fold_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

const FoldKernels kFoldAvx2 = {"avx2", find_fold_in<Avx2>, find_compressed_sum_avx2};

}  // namespace tutti
