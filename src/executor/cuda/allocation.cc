#include "src/executor/cuda/allocation.h"

#include "src/executor/cuda/driver.h"

namespace tutti {

// The runtime has no such function.
cudaError_t find_allocation(std::byte* memory, Allocation& allocation) {
  decltype(&cuMemGetAddressRange) get = nullptr;
  if (!find_in_driver("cuMemGetAddressRange", get)) return cudaErrorSymbolNotFound;
  CUdeviceptr begin = 0;
  if (get(&begin, &allocation.bytes, reinterpret_cast<CUdeviceptr>(memory)) != CUDA_SUCCESS)
    return cudaErrorInvalidDevicePointer;
  allocation.begin = reinterpret_cast<std::byte*>(begin);
  return cudaSuccess;
}

}  // namespace tutti
