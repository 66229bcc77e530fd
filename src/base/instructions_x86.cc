#include "src/base/instructions.h"

namespace tutti {
namespace {

Instructions probe() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? Instructions::avx512 : avx2 ? Instructions::avx2 : Instructions::baseline;
}

}  // namespace

Instructions widest_instructions() {
  static const Instructions widest = probe();
  return widest;
}

}  // namespace tutti
