#include "perf/gpu/kernels.h"

namespace perf {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 1024;

__device__ float value(int rank, std::size_t i) { return static_cast<float>((i * 7 + rank * 3) % 64); }

__global__ void fill_with_values(float* memory, int rank, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    memory[i] = value(rank, i);
}

__global__ void compare_with_sums(const float* memory, int ranks, std::size_t count, std::uint64_t* wrong) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += value(rank, i);
    if (memory[i] != sum) atomicAdd(reinterpret_cast<unsigned long long*>(wrong), 1ULL);
  }
}

// Each thread has four accesses of 16 bytes in flight.
__global__ void copy_packs(uint4* to, const uint4* from, std::size_t packs) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += 4 * stride) {
    uint4 held[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (i + n * stride < packs) held[n] = from[i + n * stride];
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (i + n * stride < packs) to[i + n * stride] = held[n];
    }
  }
}

__global__ void do_nothing() {}

}  // namespace

void fill(float* memory, int rank, std::size_t count, cudaStream_t stream) {
  fill_with_values<<<kBlocks, kThreads, 0, stream>>>(memory, rank, count);
  check(cudaGetLastError(), "filling a buffer");
}

void count_wrong(const float* memory, int ranks, std::size_t count, std::uint64_t* wrong, cudaStream_t stream) {
  compare_with_sums<<<kBlocks, kThreads, 0, stream>>>(memory, ranks, count, wrong);
  check(cudaGetLastError(), "comparing a buffer");
}

void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  copy_packs<<<kBlocks, 512, 0, stream>>>(static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / 16);
  check(cudaGetLastError(), "copying");
}

void nothing(cudaStream_t stream) {
  do_nothing<<<1, 32, 0, stream>>>();
  check(cudaGetLastError(), "launching an empty kernel");
}

void nothing_cooperative(int blocks, cudaStream_t stream) {
  check(cudaLaunchCooperativeKernel(do_nothing, dim3(blocks), dim3(32), nullptr, 0, stream),
        "cudaLaunchCooperativeKernel");
}

}  // namespace perf
