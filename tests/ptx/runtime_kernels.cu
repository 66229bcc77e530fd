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

// Keeps its words in local memory, since their indices are not constant.
template <std::uint32_t kWords>
__device__ __noinline__ std::uint32_t sum_of_words(std::uint32_t first) {
  std::uint32_t words[kWords];
  for (std::uint32_t i = 0; i < kWords; ++i) words[(first + i) % kWords] = i;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < kWords; ++i) sum += words[(first * i) % kWords];
  return sum;
}

template <std::uint32_t kWords>
__global__ void store_sum(std::uint32_t* to) {
  const std::uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
  to[number] = sum_of_words<kWords>(number);
}

}  // namespace

const void* spin_kernel() { return reinterpret_cast<const void*>(&spin); }
const void* store_kernel() { return reinterpret_cast<const void*>(&store); }
const void* other_kernel() { return reinterpret_cast<const void*>(&do_nothing_else); }
const void* local_kernel() { return reinterpret_cast<const void*>(&store_sum<64>); }
const void* smaller_local_kernel() { return reinterpret_cast<const void*>(&store_sum<16>); }

}  // namespace tutti::test
