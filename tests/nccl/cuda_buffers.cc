// Buffers for clients on a GPU that can access all host memory.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/nccl/buffers.h"

namespace tutti::test {
namespace {

constexpr int kMaxRanks = 8;

}  // namespace

const int* device_list() {
  static constexpr int devices[kMaxRanks] = {};
  return devices;
}

cudaStream_t stream_of(int rank) {
  static const auto& streams = *[] {
    auto* made = new cudaStream_t[kMaxRanks];
    for (int i = 0; i < kMaxRanks; ++i)
      EXPECT_EQ(cudaStreamCreateWithFlags(&made[i], cudaStreamNonBlocking), cudaSuccess);
    return reinterpret_cast<cudaStream_t(*)[kMaxRanks]>(made);
  }();
  return streams[rank];
}

void finish(int rank) { EXPECT_EQ(cudaStreamSynchronize(stream_of(rank)), cudaSuccess); }

}  // namespace tutti::test
