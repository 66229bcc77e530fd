// Calls of threads with a device each. CUDA lets allocations wait for kernels of peers, which may wait for the caller.
#include "tests/ptx/thread_per_device.h"

#include <gtest/gtest.h>

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 3001;

// Allocates memory of a rank until no more is left without asking the device.
void use_up(RankDeviceMemory& memory) {
  constexpr std::size_t kChunk = 256;
  const std::size_t before = memory.bytes();
  while (memory.bytes() == before) ASSERT_TRUE(memory.allocate(kChunk).ok());
  ASSERT_TRUE(memory.allocate(memory.bytes() - before - kChunk).ok());
}

struct SumCall {
  const char* algorithm;
  const char* compression = "none";
  bool in_place = false;
};

// Rank 0 calls first. Its kernel waits for rank 1, which needs memory for its own call: for plans, scratch, copied
// inputs and rounding.
std::string sum_after_peer(const Member& member, const SumCall& shape) {
  const auto& [own, rank, ranks, meet] = member;
  RankDeviceMemory& memory = own.backend(0).peers().own_memory();
  auto* input = own.take<float>(kCount, 1);
  float* output = shape.in_place ? input : own.take<float>(kCount);
  const bool compressed = shape.compression != std::string("none");
  Call call = call_of(Collective::all_reduce, DataType::float32, kCount, input, output);
  if (compressed) call.residual = own.take<float>(kCount);
  DeviceCall made = own.call(0, call);
  made.options.algorithm = shape.algorithm;
  made.options.compression = shape.compression;
  made.options.compression_rounding = {compressed ? Rounding::stochastic : Rounding::nearest, 7};
  made.options.timeout_ms = 60'000;
  made.options.update_agreement_hash();
  if (rank != 0) use_up(memory);
  const std::size_t before = memory.bytes();
  meet.arrive_and_wait();
  Status status = rank == 0 ? enqueue({&made, 1}) : Status();
  meet.arrive_and_wait();
  if (rank != 0) status = enqueue({&made, 1});
  if (!status.ok()) return status.message();
  if (rank != 0 && memory.bytes() == before) return "no memory was needed";
  own.synchronize();
  for (std::uint64_t i = 0; i < kCount; ++i)
    if (output[i] < 1.98F || output[i] > 2.02F) return "wrong sum " + std::to_string(output[i]);
  return "right";
}

TEST(ThreadPerDevice, AllocatesWhilePeersWait) {
  const auto work = [](const Member& member) -> std::string {
    constexpr SumCall kCalls[] = {{""}, {"ring"}, {"two_shot", "none", true}, {"two_shot", "int8"}};
    for (const SumCall& call : kCalls) {
      const std::string result = sum_after_peer(member, call);
      if (result != "right") return std::string("'") + call.algorithm + "' " + call.compression + ": " + result;
    }
    return "right";
  };
  EXPECT_EQ(run_ranks(2, "none", work), "right");
}

}  // namespace
}  // namespace tutti::test
