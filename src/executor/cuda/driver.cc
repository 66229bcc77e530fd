#include "src/executor/cuda/driver.h"

#include <cuda_runtime.h>

namespace tutti {
namespace {

constexpr unsigned kAsOf = 12000;  // The version of the driver's interface that the functions are taken of.

#if CUDART_VERSION >= 12050
cudaError_t look_up(const char* name, void** function, cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPointByVersion(name, function, kAsOf, cudaEnableDefault, found);
}
#else  // It gives the version of the headers, which is 12 here as well.
cudaError_t look_up(const char* name, void** function, cudaDriverEntryPointQueryResult* found) {
  static_assert(CUDART_VERSION >= kAsOf);
  return cudaGetDriverEntryPoint(name, function, cudaEnableDefault, found);
}
#endif

DriverCalls find_all() {
  DriverCalls calls;
  const bool all =
      find_in_driver("cuCtxGetCurrent", calls.get_current) && find_in_driver("cuCtxGetDevice", calls.get_device) &&
      find_in_driver("cuCtxPushCurrent", calls.push) && find_in_driver("cuCtxPopCurrent", calls.pop) &&
      find_in_driver("cuDeviceGet", calls.find) && find_in_driver("cuDevicePrimaryCtxRetain", calls.retain);
  return all ? calls : DriverCalls();
}

}  // namespace

void* find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  if (look_up(name, &function, &found) != cudaSuccess) cudaGetLastError();
  return found == cudaDriverEntryPointSuccess ? function : nullptr;
}

const DriverCalls& driver_calls() {
  static const DriverCalls calls = find_all();
  return calls;
}

}  // namespace tutti
