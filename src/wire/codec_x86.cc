// Which codecs an x86 CPU runs.
#include "src/wire/codec_kernels.h"

namespace tutti {
namespace {

std::uint32_t count_runnable() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? 4 : avx2 ? 3 : 2;
}

}  // namespace

CodecKernelList codec_kernels() {
  static const CodecKernels kernels[] = {kCodecScalar, kCodecBaseline, kCodecAvx2, kCodecAvx512};
  static const std::uint32_t count = count_runnable();
  return {kernels, count};
}

}  // namespace tutti
