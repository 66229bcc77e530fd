#include "tests/ptx/runtime_kernels.h"

#include <cstdint>

#include "src/base/atomic.h"

namespace tutti::test {
namespace {

__global__ void spin(const std::uint32_t* word) {
  while (load_acquire(word) == 0) {
  }
}

__global__ void store(std::uint32_t* to) {
  const std::uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
  to[number] = number + 1;
}

__global__ void do_nothing_else() {}

}  // namespace

const void* spin_kernel() { return reinterpret_cast<const void*>(&spin); }
const void* store_kernel() { return reinterpret_cast<const void*>(&store); }
const void* other_kernel() { return reinterpret_cast<const void*>(&do_nothing_else); }

}  // namespace tutti::test
