// Ends the program with CUDA's error message if a CUDA call fails.
#pragma once

#include <cuda_runtime.h>

#include "perf/tool/fail.h"

namespace perf {

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail("%s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace perf
