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

template <typename Function>
bool find(const char* name, Function& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  if (look_up(name, &address, &found) != cudaSuccess) cudaGetLastError();
  if (found != cudaDriverEntryPointSuccess || address == nullptr) return false;
  function = reinterpret_cast<Function>(address);
  return true;
}

DriverCalls find_all() {
  DriverCalls calls;
  const bool all = find("cuCtxGetCurrent", calls.get_current) && find("cuCtxGetDevice", calls.get_device) &&
                   find("cuCtxPushCurrent", calls.push) && find("cuCtxPopCurrent", calls.pop) &&
                   find("cuDeviceGet", calls.find) && find("cuDevicePrimaryCtxRetain", calls.retain);
  return all ? calls : DriverCalls();
}

}  // namespace

const DriverCalls& driver_calls() {
  static const DriverCalls calls = find_all();
  return calls;
}

}  // namespace tutti
