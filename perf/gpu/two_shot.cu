// Hand-written two-shot all-reduce, for comparison with the interpreter.
#include "perf/gpu/kernels.h"
#include "perf/tool/fail.h"

namespace perf {
namespace {

constexpr int kThreads = 512;
constexpr int kInFlight = 4;  // Packs of every source that a thread loads at once.

__device__ void post(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ std::uint32_t look(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// Barrier of the thread blocks with this index on all ranks. Makes earlier writes of each visible to the others.
template <int kRanks>
__device__ void meet(const TwoShot& call, std::uint32_t number) {
  __syncthreads();
  if (threadIdx.x < kRanks) {
    const int self = blockIdx.y, peer = threadIdx.x;
    post(call.flags + (peer * call.blocks + blockIdx.x) * kMaxRanks + self, number);
    const std::uint32_t* const theirs = call.flags + (self * call.blocks + blockIdx.x) * kMaxRanks + peer;
    // The flag may be greater by one: a peer can reach the next barrier before this block reads the flag.
    while (static_cast<std::int32_t>(look(theirs) - number) < 0) {
    }
  }
  __syncthreads();
}

__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

template <int kRanks, int kPacks>
__device__ void reduce(const TwoShot& call, std::size_t first, std::size_t stride) {
  float4 packs[kRanks][kPacks];
#pragma unroll
  for (int rank = 0; rank < kRanks; ++rank) {
#pragma unroll
    for (int n = 0; n < kPacks; ++n)
      packs[rank][n] = reinterpret_cast<const float4*>(call.inputs[rank])[first + n * stride];
  }
#pragma unroll
  for (int rank = 1; rank < kRanks; ++rank) {
#pragma unroll
    for (int n = 0; n < kPacks; ++n) packs[0][n] = packs[0][n] + packs[rank][n];
  }
#pragma unroll
  for (int rank = 0; rank < kRanks; ++rank) {
#pragma unroll
    for (int n = 0; n < kPacks; ++n) reinterpret_cast<float4*>(call.outputs[rank])[first + n * stride] = packs[0][n];
  }
}

template <int kRanks>
__device__ void reduce_part(const TwoShot& call) {
  constexpr int kPacks = kRanks > 4 ? kInFlight / 2 : kInFlight;  // Limited by registers.
  const std::size_t packs = call.count / 4;
  const std::size_t begin = packs * blockIdx.y / kRanks, end = packs * (blockIdx.y + 1) / kRanks;
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = begin + std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kPacks - 1) * stride < end; i += kPacks * stride) reduce<kRanks, kPacks>(call, i, stride);
  for (; i < end; i += stride) reduce<kRanks, 1>(call, i, stride);
  const std::size_t loose = packs * 4 + threadIdx.x;  // The first block of the last rank handles the remainder.
  if (blockIdx.y + 1 < kRanks || blockIdx.x > 0 || loose >= call.count) return;
  float sum = call.inputs[0][loose];
  for (int rank = 1; rank < kRanks; ++rank) sum += call.inputs[rank][loose];
  for (int rank = 0; rank < kRanks; ++rank) call.outputs[rank][loose] = sum;
}

// The epoch is in device memory, so that a graph can replay the call.
template <int kRanks>
__global__ void __launch_bounds__(kThreads) two_shot_of(const __grid_constant__ TwoShot call) {
  std::uint32_t* const epoch = call.epochs + blockIdx.y * call.blocks + blockIdx.x;
  const std::uint32_t number = 2 * *epoch;
  meet<kRanks>(call, number + 1);
  reduce_part<kRanks>(call);
  meet<kRanks>(call, number + 2);
  if (threadIdx.x == 0) ++*epoch;
}

const void* kernel_for(int ranks) {
  switch (ranks) {
    case 2: return reinterpret_cast<const void*>(&two_shot_of<2>);
    case 4: return reinterpret_cast<const void*>(&two_shot_of<4>);
    case 8: return reinterpret_cast<const void*>(&two_shot_of<8>);
    default: fail("the kernel written by hand is for 2, 4 or 8 ranks, not %d", ranks);
  }
}

}  // namespace

void two_shot(const TwoShot& call, cudaStream_t stream) {
  void* arguments[] = {const_cast<TwoShot*>(&call)};
  const dim3 grid(static_cast<unsigned>(call.blocks), static_cast<unsigned>(call.ranks));
  check(cudaLaunchCooperativeKernel(kernel_for(call.ranks), grid, dim3(kThreads), arguments, 0, stream),
        "cudaLaunchCooperativeKernel");
}

int max_blocks(int ranks) {
  int device = 0, processors = 0, blocks = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_for(ranks), kThreads, 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return processors * blocks / ranks;
}

}  // namespace perf
