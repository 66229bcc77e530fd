// Ranks on devices that are, or play to be, on several hosts.
#include <thread>

#include "tests/communicator/device/own_calls.h"

namespace tutti {
namespace {

std::string run_all(DeviceRanks& own, Rank first, Rank ranks) {
  std::string said = run_collectives(own, first, ranks);
  for (const std::uint64_t count : {1U, 300000U}) {
    if (said == "right") said = run_messages(own, first, ranks, count);
  }
  return said;
}

CommunicatorOptions by_tcp() {
  CommunicatorOptions options;
  options.transport = "tcp";
  return options;
}

class DeviceNetwork : public OnDevices {};

TEST_P(DeviceNetwork, ReducesBetweenTwoRanks) {
  DeviceRanks ranks(*rig_, 2, by_tcp());
  for (const std::uint64_t count : {1U, 1000U, 1000000U}) {
    std::vector<float*> buffers;
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < 2; ++rank) {
      buffers.push_back(ranks.take<float>(count, static_cast<float>(rank + 1)));
      calls.push_back(
          ranks.call(rank, call_of(Collective::all_reduce, DataType::float32, count, buffers[rank], buffers[rank])));
    }
    const Status status = enqueue(calls);
    ASSERT_TRUE(status.ok()) << status.message();
    ranks.synchronize();
    for (Rank rank = 0; rank < 2; ++rank) {
      const Status failed = ranks[rank].failure();
      ASSERT_TRUE(failed.ok()) << failed.message();
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(buffers[rank][i], 3) << i;
    }
  }
}

TEST_P(DeviceNetwork, RunsEveryCall) {
  for (const Rank n : {2U, 3U, 5U}) {
    DeviceRanks ranks(*rig_, n, by_tcp());
    EXPECT_EQ(run_all(ranks, 0, n), "right");
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceNetwork, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti
