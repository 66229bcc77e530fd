// Kernels of gpu_bench: test data, copies, and a hand-written all-reduce. Functions enqueue kernels; errors end the
// program.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "perf/tool/gpu_check.h"

namespace perf {

inline constexpr int kMaxRanks = 8;

// Fills a rank's input with small integers, so that sums are exact in any order.
void fill(float* memory, int rank, std::size_t count, cudaStream_t stream);
// Adds to *wrong the number of elements that are not the sum of all ranks' inputs.
void count_wrong(const float* memory, int ranks, std::size_t count, std::uint64_t* wrong, cudaStream_t stream);

void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);  // `bytes`: a multiple of 64.
void nothing(cudaStream_t stream);
void nothing_cooperative(int blocks, cudaStream_t stream);

// Two-shot all-reduce of ranks that share a GPU. Thread blocks with the same index on all ranks meet at a barrier, each
// rank sums its part of all inputs into all outputs, and they meet again. One cooperative launch runs all ranks.
struct TwoShot {
  const float* inputs[kMaxRanks];
  float* outputs[kMaxRanks];
  std::uint32_t* flags;   // [receiver][block][sender], zeroed before the first call.
  std::uint32_t* epochs;  // [rank][block], zeroed before the first call.
  std::size_t count;      // Elements; a multiple of 4 for each rank, or fewer than 4 per rank.
  int ranks;
  int blocks;  // Thread blocks of each rank.
};
void two_shot(const TwoShot& call, cudaStream_t stream);
int max_blocks(int ranks);  // Maximum thread blocks per rank with which all thread blocks run concurrently.

}  // namespace perf
