// Scalar arithmetic with the processor's conversions of float16. Host and device compile this source.
#pragma once

#include "src/executor/numeric_reduce.h"

// half_widened(bits), half_narrowed(value): like the generic conversions of numeric.h.
#if defined(__CUDA_ARCH__)
#include "src/executor/thread_block/half_cuda.h"
#else
#include "src/executor/thread_block/half_portable.h"
#endif

namespace tutti {

struct KernelScalar : Scalar {
  template <typename T>
  TUTTI_NUMERIC static float widened(Bits<T> bits) {
    if constexpr (std::is_same_v<T, Float16>) return half_widened(bits);
    return Scalar::widened<T>(bits);
  }
  template <typename T>
  TUTTI_NUMERIC static Bits<T> narrowed(float value) {
    if constexpr (std::is_same_v<T, Float16>) return half_narrowed(value);
    return Scalar::narrowed<T>(value);
  }
};

}  // namespace tutti
