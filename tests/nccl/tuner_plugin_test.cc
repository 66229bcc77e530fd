// A tuner plugin with the API of NCCL.
#include <cstdlib>
#include <vector>

#include "tests/nccl/clients.h"
#include "tests/nccl/newer_nccl.h"
#include "tests/tuner/plugin/stand_in.h"

namespace tutti::test {
namespace {

// Set before the library reads it, at its first use.
[[maybe_unused]] const int named = ::setenv("NCCL_TUNER_PLUGIN", STAND_IN_V4, 1);

TEST(TunerPlugin, ReceivesNcclsNumbers) {
  StandIn& stand_in = stand_in_of(STAND_IN_V4);
  stand_in.answer = [](const AskedCall& call, nccl_tuner::Table& table, std::int32_t& channels) {
    channels = 1;
    table[1][2] = 0;
    return call.collective == 2 ? 0 : 1;  // All other calls fail.
  };
  const NcclRanks ranks(2);
  run_threads(2, [&](int rank) {
    std::vector<int> send(1000, rank), recv(2000);
    NCCL_EXPECT_OK(ncclAllGather(send.data(), recv.data(), send.size(), ncclInt32, ranks[rank], nullptr));
    EXPECT_EQ(recv[999], 0);
    EXPECT_EQ(recv[1000], 1);
  });
  EXPECT_EQ(stand_in.answers, 2);
  EXPECT_EQ(stand_in.requested.collective, 2);
  EXPECT_EQ(stand_in.requested.bytes, 8000U);
  run_threads(2, [&](int rank) {
    std::vector<int> values(1000, rank);
    NCCL_EXPECT_OK(ncclBroadcast(values.data(), values.data(), values.size(), ncclInt32, 1, ranks[rank], nullptr));
    EXPECT_EQ(values.back(), 1);
  });
  EXPECT_EQ(stand_in.answers, 4);
  EXPECT_EQ(stand_in.requested.collective, 0);
}

// A request of copy engines does not predict each call.
TEST(TunerPlugin, IsAskedOnceForCallsWithPolicyZero) {
  StandIn& stand_in = stand_in_of(STAND_IN_V4);
  stand_in.answer = nullptr;
  stand_in.answers = 0;
  const NcclRanks ranks(2);
  ncclCollConfig_t config = call_config();
  config.forceAlgSelection = 0;
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  run_threads(2, [&](int rank) {
    std::vector<int> send(1000, rank), recv(2000);
    for (int turn = 0; turn < 3; ++turn)
      NCCL_EXPECT_OK(
          ncclAllGatherConfig(send.data(), recv.data(), send.size(), ncclInt32, ranks[rank], nullptr, &config));
    EXPECT_EQ(recv[1000], 1);
  });
  EXPECT_EQ(stand_in.answers, 2);
}

}  // namespace
}  // namespace tutti::test
