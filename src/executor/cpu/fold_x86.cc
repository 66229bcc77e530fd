// Which kernels an x86 CPU runs.
#include "src/executor/cpu/fold_kernels.h"

namespace tutti {
namespace {

std::uint32_t count_runnable() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? 3 : avx2 ? 2 : 1;
}

}  // namespace

FoldKernelList fold_kernels() {
  static const FoldKernels kernels[] = {kFoldBaseline, kFoldAvx2, kFoldAvx512};
  static const std::uint32_t count = count_runnable();
  return {kernels, count};
}

}  // namespace tutti
