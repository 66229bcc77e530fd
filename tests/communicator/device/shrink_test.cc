// Shrinking communicators of ranks on a device.
#include <thread>

#include "tests/communicator/device/device_ranks.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 5000;

Status enqueue_sum(Communicator& communicator, DeviceStream stream, float* buffer) {
  DeviceCall call = {.communicator = &communicator,
                     .call = call_of(Collective::all_reduce, DataType::float32, kCount, buffer, buffer),
                     .options = communicator.options(),
                     .stream = stream};
  call.options.timeout_ms = 20'000;
  return enqueue({&call, 1});
}

class DeviceShrink : public OnDevices {};

// A call fails because rank 1 does not make it. The other ranks shrink the communicator, and the new one must work.
TEST_P(DeviceShrink, Succeeds_AfterFailure) {
  DeviceRanks ranks(*rig_, 3);
  std::vector<DeviceCall> calls;
  for (const Rank rank : {0U, 2U}) {
    calls.push_back(ranks.call(rank, call_of(Collective::all_reduce, DataType::float32, kCount,
                                             ranks.take<float>(kCount, 1), ranks.take<float>(kCount))));
    calls.back().options.timeout_ms = 20;
  }
  for (const DeviceCall& call : calls) ASSERT_TRUE(enqueue({&call, 1}).ok());
  ranks.synchronize();
  ASSERT_EQ(ranks[0].failure().code(), Code::timeout);

  Communicators parts(2);
  std::vector<std::thread> threads;
  for (const Rank rank : {0U, 2U}) {
    threads.emplace_back([&, rank] {
      auto part = ranks[rank].shrink({1}, ranks[rank].options());
      EXPECT_TRUE(part.ok()) << std::move(part).status().message();
      if (part.ok()) parts[rank / 2] = std::move(part).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(parts[0] != nullptr && parts[1] != nullptr);
  float* const buffers[] = {ranks.take<float>(kCount, 1), ranks.take<float>(kCount, 2)};
  for (Rank rank = 0; rank < 2; ++rank) {
    ASSERT_NE(parts[rank]->on_device(), nullptr);
    EXPECT_EQ(parts[rank]->rank(), rank);
    ASSERT_TRUE(enqueue_sum(*parts[rank], ranks.stream(2 * rank), buffers[rank]).ok());
  }
  ranks.synchronize();
  for (const float* buffer : buffers)
    EXPECT_EQ(std::vector<float>(buffer, buffer + kCount), std::vector<float>(kCount, 3));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceShrink, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
