// Baseline instructions: 128-bit GNU vectors.
#include "src/base/vector_baseline.h"
#include "src/executor/cpu/fold_kernel.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

const FoldKernels kFoldBaseline = {"baseline", find_fold_in<Baseline>, find_compressed_sum_baseline};

}  // namespace tutti
