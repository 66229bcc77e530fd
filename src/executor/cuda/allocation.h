// Where the program's memory begins: what other processes open is whole allocations.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace tutti {

struct Allocation {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// The allocation of the current device that `memory` lies in.
cudaError_t find_allocation(std::byte* memory, Allocation& allocation);

}  // namespace tutti
