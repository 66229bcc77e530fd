// Tuner plugins that choose algorithms and channels for ranks on devices.
#include "tests/communicator/device/own_calls.h"
#include "tests/tuner/plugin/stand_in.h"

namespace tutti::test {
namespace {

using nccl_tuner::Table;

class DeviceTunerPlugin : public OnDevices {
 protected:
  void SetUp() override {
    OnDevices::SetUp();
    stand_in_ = StandIn();
  }
  static CommunicatorOptions options() {
    CommunicatorOptions made;
    made.memory = Memory::cuda;
    made.tuner_plugin = STAND_IN_V5;
    return made;
  }
  StandIn& stand_in_ = stand_in_of(STAND_IN_V5);
};

TEST_P(DeviceTunerPlugin, DecidesAlgorithmAndChannels) {
  stand_in_.answer = [](const AskedCall& call, Table& table, std::int32_t& channels) {
    channels = call.bytes > 1024 ? 1'000'000 : 1;  // Above the maximum, so it must be limited.
    table[1][2] = 0;
    return 0;
  };
  DeviceRanks ranks(*rig_, 3, options());
  EXPECT_EQ(stand_in_.contexts, 3);
  Problem problem;
  problem.ranks = 3;
  for (const std::uint64_t count : {10, 50'000}) {
    EXPECT_EQ(run_collective(ranks, 0, {problem, count, 0}), "");
    EXPECT_EQ(stand_in_.requested.bytes, count * sizeof(std::int64_t));
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_STREQ(ranks[rank].last_run().algorithm, "ring");
      EXPECT_STREQ(ranks[rank].last_run().protocol, "Simple");
    }
  }
  EXPECT_EQ(stand_in_.answers, 6) << "by each rank for each shape of call, and for nothing that comes before";
}

// Only the plugin of rank 1 requests the ring. Both ranks must report the difference instead of waiting for each other.
TEST_P(DeviceTunerPlugin, FailsCall_WhenPluginsDisagree) {
  stand_in_.answer = [](const AskedCall& call, Table& table, std::int32_t&) {
    if (call.context == 1) table[1][2] = 0;
    return 0;
  };
  DeviceRanks ranks(*rig_, 2, options());
  auto* buffers = ranks.take<float>(10'000, 1);
  for (Rank rank = 0; rank < 2; ++rank) {
    float* buffer = buffers + 5000 * rank;
    const DeviceCall call = ranks.call(rank, call_of(Collective::all_reduce, DataType::float32, 5000, buffer, buffer));
    ASSERT_TRUE(enqueue({&call, 1}).ok());
  }
  while (ranks[0].failure().ok() && ranks[1].failure().ok()) {
  }
  ranks.synchronize();
  for (Rank rank = 0; rank < 2; ++rank) {
    const std::string reported = ranks[rank].failure().message();
    EXPECT_NE(reported.find(" choose differently: TUTTI_TUNER_PLUGIN"), std::string::npos) << reported;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTunerPlugin, testing::ValuesIn(shared_device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
