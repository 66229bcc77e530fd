#include "src/executor/cpu/fold.h"

namespace tutti {

const FoldKernels& widest_fold_kernels() {
  const FoldKernelList list = fold_kernels();
  return list.first[list.count - 1];
}

FoldFunction find_fold(DataType type, Reduction reduction) { return widest_fold_kernels().find_fold(type, reduction); }

}  // namespace tutti
