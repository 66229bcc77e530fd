// Kernels for x86 CPUs.
#include "src/base/instructions.h"
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {

FoldKernelList fold_kernels() {
  static const FoldKernels kernels[] = {kFoldBaseline, kFoldAvx2, kFoldAvx512};
  return {kernels, 1 + static_cast<std::uint32_t>(widest_instructions())};
}

}  // namespace tutti
