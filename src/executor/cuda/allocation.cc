#include "src/executor/cuda/allocation.h"

#include <cuda.h>

namespace tutti {
namespace {

// The runtime has no such function, and the library is not linked with the driver.
using GetAddressRange = CUresult (*)(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr memory);
constexpr unsigned kSince = 3020;  // Version of CUDA in which the function got this form.

}  // namespace

cudaError_t find_allocation(std::byte* memory, Allocation& allocation) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, kSince, cudaEnableDefault, &result);
  if (error != cudaSuccess) return error;
  if (result != cudaDriverEntryPointSuccess) return cudaErrorSymbolNotFound;
  CUdeviceptr begin = 0;
  const auto get = reinterpret_cast<GetAddressRange>(found);
  if (get(&begin, &allocation.bytes, reinterpret_cast<CUdeviceptr>(memory)) != CUDA_SUCCESS)
    return cudaErrorInvalidDevicePointer;
  allocation.begin = reinterpret_cast<std::byte*>(begin);
  return cudaSuccess;
}

}  // namespace tutti
