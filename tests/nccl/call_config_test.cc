// Collectives with an ncclCollConfig_t. Sums of the values are exact without compression, and none is exact in int4.
#include <algorithm>

#include "tests/nccl/clients.h"
#include "tests/nccl/newer_nccl.h"
#include "tutti/nccl.h"

namespace tutti::test {
namespace {

constexpr int kMembers = 3;
constexpr std::size_t kElements = 4096;

// A config with one option of Tutti.
struct WithOption {
  ncclConfigExt_t extension = {};
  ncclCollConfig_t config = call_config();

  WithOption(int option, const char* value) {
    extension.key = {TUTTI_NCCL_VENDOR_ID, option};
    extension.val.s = value;
    config.ext = &extension;
  }
};

// Returns whether an all-reduce with the config has the exact result on all ranks.
bool sums_exactly(const NcclRanks& ranks, const ncclCollConfig_t* config) {
  std::vector<std::vector<float>> results(kMembers, std::vector<float>(kElements));
  ranks.run([&](int rank, ncclComm_t comm) {
    const std::vector<float> send = values_of<float>(rank, kElements);
    NCCL_EXPECT_OK(ncclAllReduceConfig(send.data(), results[rank].data(), kElements, ncclFloat32, ncclSum, comm,
                                       stream_of(rank), config));
    finish(rank);
  });
  return std::all_of(results.begin(), results.end(), [](const std::vector<float>& result) {
    for (std::size_t i = 0; i < kElements; ++i)
      if (result[i] != static_cast<float>(sum_of(kMembers, i))) return false;
    return true;
  });
}

// `value` must live until the call has ended.
ncclResult_t sum_alone(ncclComm_t comm, const ncclCollConfig_t& config, float& value) {
  return ncclAllReduceConfig(&value, &value, 1, ncclFloat32, ncclSum, comm, stream_of(0), &config);
}

// For calls that are refused.
ncclResult_t sum_alone(ncclComm_t comm, const ncclCollConfig_t& config) {
  float value = 0;
  return sum_alone(comm, config, value);
}

TEST(CallConfig, RunsReductions) {
  const NcclRanks ranks(kMembers);
  const ncclCollConfig_t config = call_config();
  ranks.run([&](int rank, ncclComm_t comm) {
    const std::vector<int> send = values_of<int>(rank, kMembers);
    std::vector<int> all(kMembers), root(kMembers), part(1);
    NCCL_EXPECT_OK(
        ncclAllReduceConfig(send.data(), all.data(), kMembers, ncclInt32, ncclSum, comm, stream_of(rank), &config));
    NCCL_EXPECT_OK(
        ncclReduceConfig(send.data(), root.data(), kMembers, ncclInt32, ncclSum, 1, comm, stream_of(rank), nullptr));
    NCCL_EXPECT_OK(
        ncclReduceScatterConfig(send.data(), part.data(), 1, ncclInt32, ncclSum, comm, stream_of(rank), &config));
    finish(rank);
    for (std::size_t i = 0; i < kMembers; ++i) EXPECT_EQ(all[i], sum_of(kMembers, i));
    for (std::size_t i = 0; i < kMembers && rank == 1; ++i) EXPECT_EQ(root[i], sum_of(kMembers, i));
    EXPECT_EQ(part[0], sum_of(kMembers, static_cast<std::size_t>(rank)));
  });
}

TEST(CallConfig, RunsOtherCollectives) {
  const NcclRanks ranks(kMembers);
  const ncclCollConfig_t config = call_config();
  ranks.run([&](int rank, ncclComm_t comm) {
    const std::vector<int> send = values_of<int>(rank, kMembers);
    std::vector<int> copied(kMembers), all(kMembers), exchanged(kMembers), gathered(kMembers), scattered(1);
    cudaStream_t stream = stream_of(rank);
    NCCL_EXPECT_OK(ncclBroadcastConfig(send.data(), copied.data(), kMembers, ncclInt32, 2, comm, stream, &config));
    NCCL_EXPECT_OK(ncclAllGatherConfig(send.data(), all.data(), 1, ncclInt32, comm, stream, &config));
    NCCL_EXPECT_OK(ncclAlltoAllConfig(send.data(), exchanged.data(), 1, ncclInt32, comm, stream, &config));
    NCCL_EXPECT_OK(ncclGatherConfig(send.data(), gathered.data(), 1, ncclInt32, 1, comm, stream, &config));
    NCCL_EXPECT_OK(ncclScatterConfig(send.data(), scattered.data(), 1, ncclInt32, 1, comm, stream, &config));
    finish(rank);
    EXPECT_EQ(copied, values_of<int>(2, kMembers));
    for (int peer = 0; peer < kMembers; ++peer) {
      EXPECT_EQ(all[peer], value_of(peer, 0));
      EXPECT_EQ(exchanged[peer], value_of(peer, static_cast<std::size_t>(rank)));
      EXPECT_EQ(gathered[peer], rank == 1 ? value_of(peer, 0) : 0);
    }
    EXPECT_EQ(scattered[0], value_of(1, static_cast<std::size_t>(rank)));
  });
}

TEST(CallConfig, CompressesCall_WithTuttisOption) {
  const NcclRanks ranks(kMembers);
  const WithOption compressed(TUTTI_NCCL_COMPRESSION, "int4"), bounded(TUTTI_NCCL_MAX_RELATIVE_ERROR, "0.2");
  const WithOption raw(TUTTI_NCCL_COMPRESSION, "raw");
  for (int time = 0; time < 2; ++time) {
    EXPECT_FALSE(sums_exactly(ranks, &compressed.config));
    EXPECT_TRUE(sums_exactly(ranks, nullptr)) << "other calls are unaffected";
    EXPECT_TRUE(sums_exactly(ranks, &raw.config));
  }
  NCCL_EXPECT_OK(ncclGroupStart());
  std::vector<std::vector<float>> values;
  for (int rank = 0; rank < kMembers; ++rank) values.push_back(values_of<float>(rank, kElements));
  for (int rank = 0; rank < kMembers; ++rank) {
    NCCL_EXPECT_OK(ncclAllReduceConfig(values[rank].data(), values[rank].data(), kElements, ncclFloat32, ncclSum,
                                       ranks[rank], stream_of(rank), &bounded.config));
  }
  NCCL_EXPECT_OK(ncclGroupEnd());
  for (int rank = 0; rank < kMembers; ++rank) finish(rank);
  EXPECT_NEAR(values[0][5], static_cast<float>(sum_of(kMembers, 5)), 20);
}

TEST(CallConfig, IgnoresOptionsOfOtherVendors) {
  const NcclRanks ranks(kMembers);
  WithOption compressed(TUTTI_NCCL_COMPRESSION, "int4");
  ncclConfigExt_t other = {};
  other.key = {TUTTI_NCCL_VENDOR_ID + 1, TUTTI_NCCL_COMPRESSION};
  other.next = &compressed.extension;
  compressed.config.ext = &other;
  EXPECT_FALSE(sums_exactly(ranks, &compressed.config)) << "the second entry counts";
  other.next = nullptr;
  EXPECT_TRUE(sums_exactly(ranks, &compressed.config));
}

// Ranks that select different algorithms fail: the selection reaches the plan.
TEST(CallConfig, SelectsAlgorithm) {
  const NcclRanks ranks(kMembers);
  ncclCollConfig_t config = call_config();
  for (const char* selection : {"ring", "NVLS, Tree", "one_shot", "Ring,Tree"}) {
    config.algSelection = selection;
    EXPECT_TRUE(sums_exactly(ranks, &config)) << selection;
  }
  float values[2] = {};
  const NcclRanks different(2, non_blocking_config());
  for (int rank = 0; rank < 2; ++rank) {
    config.algSelection = rank == 0 ? "ring" : "tree";
    EXPECT_NE(sum_alone(different[rank], config, values[rank]), ncclInvalidArgument);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(outcome_of(different[rank]), ncclInvalidUsage);
  expect_error_text("requests algorithm ");
}

TEST(CallConfig, RefusesUnknownAlgorithm_UnlessItIsNotForced) {
  const NcclRanks ranks(kMembers);
  ncclCollConfig_t config = call_config();
  config.algSelection = "nvls,collnetdirect";
  EXPECT_EQ(sum_alone(ranks[0], config), ncclInvalidUsage);
  expect_error_text("config.algSelection is \"nvls,collnetdirect\", but all_reduce has none of these algorithms");
  config.forceAlgSelection = 0;
  EXPECT_TRUE(sums_exactly(ranks, &config));
  config.algSelection = "hierarchical";  // Needs several hosts.
  EXPECT_TRUE(sums_exactly(ranks, &config));
  config.forceAlgSelection = 1;
  ranks.run([&](int, ncclComm_t comm) { EXPECT_EQ(sum_alone(comm, config), ncclInvalidArgument); });
  config.algSelection = "";
  EXPECT_TRUE(sums_exactly(ranks, &config));
}

// Ranks with different policies request different algorithms.
TEST(CallConfig, RequestsCopyEngines_ByPolicyZero) {
  const NcclRanks ranks(kMembers);
  ncclCollConfig_t config = call_config();
  config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
  ranks.run([&](int rank, ncclComm_t comm) {
    const std::vector<int> send = values_of<int>(rank, 1);
    std::vector<int> all(kMembers);
    NCCL_EXPECT_OK(ncclAllGatherConfig(send.data(), all.data(), 1, ncclInt32, comm, stream_of(rank), &config));
    finish(rank);
    for (int peer = 0; peer < kMembers; ++peer) EXPECT_EQ(all[peer], values_of<int>(peer, 1)[0]);
  });
  int values[2] = {}, results[2][2] = {};
  const NcclRanks different(2, non_blocking_config());
  for (int rank = 0; rank < 2; ++rank) {
    config.CTAPolicy = rank == 0 ? NCCL_CTA_POLICY_ZERO : NCCL_CTA_POLICY_EFFICIENCY;
    (void)ncclAllGatherConfig(&values[rank], results[rank], 1, ncclInt32, different[rank], stream_of(rank), &config);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(outcome_of(different[rank]), ncclInvalidUsage);
  expect_error_text("copy_engines");  // Either rank may find the difference.
}

void expect_refused(ncclComm_t comm, const ncclCollConfig_t& config, const char* words) {
  EXPECT_EQ(sum_alone(comm, config), ncclInvalidArgument);
  expect_error_text(words);
}

// The communicator stays usable.
TEST(CallConfig, RejectsInvalidFields) {
  const NcclRanks ranks(kMembers);
  const auto with = [](auto member, auto value) {
    ncclCollConfig_t config = call_config();
    config.*member = value;
    return config;
  };
  expect_refused(ranks[0], with(&ncclCollConfig_t::magic, 1), "config.magic is wrong");
  expect_refused(ranks[0], with(&ncclCollConfig_t::size, 56), "config.size is 56, but must be at least 64");
  expect_refused(ranks[0], with(&ncclCollConfig_t::minCTAs, 0), "config.minCTAs is 0; pass 1 or more");
  expect_refused(ranks[0], with(&ncclCollConfig_t::cgaClusterSize, 9), "config.cgaClusterSize is 9; pass 0 to 8");
  expect_refused(ranks[0], with(&ncclCollConfig_t::forceAlgSelection, NCCL_CONFIG_UNDEF_INT), "forceAlgSelection is -");
  expect_refused(ranks[0], with(&ncclCollConfig_t::CTAPolicy, 4), "config.CTAPolicy is 4; pass 0 to 3");
  ncclCollConfig_t config = with(&ncclCollConfig_t::minCTAs, 8);
  config.maxCTAs = 4;
  expect_refused(ranks[0], config, "config.minCTAs is 8, more than config.maxCTAs, 4");
  EXPECT_TRUE(sums_exactly(ranks, nullptr));
}

// Ranks with different bounds fail: the bounds reach the plan.
TEST(CallConfig, BoundsNumberOfChannels) {
  ncclConfig_t narrow = non_blocking_config();
  narrow.minCTAs = 2;
  narrow.maxCTAs = 4;
  ncclCollConfig_t config = call_config();
  {
    const NcclRanks ranks(kMembers, narrow);
    config.maxCTAs = 5;
    expect_refused(ranks[0], config, "config.maxCTAs is 5, more than maxCTAs of the communicator, 4");
    config.maxCTAs = NCCL_CONFIG_UNDEF_INT;
    config.minCTAs = 5;
    expect_refused(ranks[0], config, "min_channels is 5, more than max_channels, 4");
    config.minCTAs = NCCL_CONFIG_UNDEF_INT;
  }
  float values[2] = {};
  const NcclRanks ranks(2, narrow);
  for (int rank = 0; rank < 2; ++rank) {
    config.maxCTAs = rank + 1;
    EXPECT_NE(sum_alone(ranks[rank], config, values[rank]), ncclInvalidArgument) << "1 is below minCTAs of all calls";
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidUsage);
  expect_error_text("or minCTAs, maxCTAs and CTAPolicy)");
}

// Bounds of a call replace that of the communicator's policy.
TEST(CallConfig, BoundsNumberOfChannels_BeyondPolicyEfficiency) {
  ncclConfig_t efficient = NCCL_CONFIG_INITIALIZER;
  efficient.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
  const NcclRanks ranks(kMembers, efficient);
  ncclCollConfig_t config = call_config();
  config.maxCTAs = 32;
  EXPECT_TRUE(sums_exactly(ranks, &config));
  config.maxCTAs = NCCL_CONFIG_UNDEF_INT;
  config.minCTAs = 32;
  EXPECT_TRUE(sums_exactly(ranks, &config));
  config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
  EXPECT_TRUE(sums_exactly(ranks, &config));
}

// Policy efficiency is a bound on channels.
TEST(CallConfig, BoundsNumberOfChannels_ByPolicyEfficiency) {
  ncclCollConfig_t config = call_config();
  float values[2] = {};
  const NcclRanks ranks(2, non_blocking_config());
  for (int rank = 0; rank < 2; ++rank) {
    config.CTAPolicy = rank == 0 ? NCCL_CTA_POLICY_EFFICIENCY : NCCL_CTA_POLICY_DEFAULT;
    EXPECT_NE(sum_alone(ranks[rank], config, values[rank]), ncclInvalidArgument);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(outcome_of(ranks[rank]), ncclInvalidUsage);
  expect_error_text("or minCTAs, maxCTAs and CTAPolicy)");
}

TEST(CallConfig, AcceptsStructsOfOtherVersions) {
  const NcclRanks ranks(kMembers);
  struct Longer {
    ncclCollConfig_t known = call_config();
    char more[64];
  } longer;
  longer.known.size = sizeof longer;
  EXPECT_TRUE(sums_exactly(ranks, &longer.known));
  ncclCollConfig_t first = call_config();
  first.size = 64;  // 2.31
  reinterpret_cast<char*>(&first)[64] = 1;
  EXPECT_TRUE(sums_exactly(ranks, &first)) << "the program's struct ends before";
  first.size = sizeof first;
  EXPECT_EQ(sum_alone(ranks[0], first), ncclInvalidUsage);
  expect_error_text("config.launchCompletionEvent is not supported");
}

TEST(CallConfig, RejectsInvalidOptions) {
  const NcclRanks ranks(kMembers);
  expect_refused(ranks[0], WithOption(99, "x").config,
                 "config.ext has option 99 of Tutti, which this version does not");
  expect_refused(ranks[0], WithOption(TUTTI_NCCL_COMPRESSION, nullptr).config, "without a text in val.s");
  expect_refused(ranks[0], WithOption(TUTTI_NCCL_COMPRESSION, "int5").config, "int5");
  expect_refused(ranks[0], WithOption(TUTTI_NCCL_MAX_RELATIVE_ERROR, "1.5").config,
                 "is \"1.5\"; pass a number above 0");
  expect_refused(ranks[0], WithOption(TUTTI_NCCL_COMPRESSION_ROUNDING, "up").config, "up");
  WithOption twice(TUTTI_NCCL_COMPRESSION, "int8");
  ncclConfigExt_t second = twice.extension;
  twice.extension.next = &second;
  expect_refused(ranks[0], twice.config, "twice; pass it once");
  second.key.optionId = TUTTI_NCCL_MAX_RELATIVE_ERROR;
  second.val.s = "0.1";
  expect_refused(ranks[0], twice.config, "pass only one of them");
  second.key.vendorId = 1;
  second.next = &second;
  expect_refused(ranks[0], twice.config, "or is a circle");
  EXPECT_TRUE(sums_exactly(ranks, nullptr));
}

TEST(CallConfig, LimitsNumberOfConfigs) {
  float value = 0;
  const NcclRanks ranks(1);
  ncclResult_t result = ncclSuccess;
  for (int i = 1; i <= 100 && result == ncclSuccess; ++i) {
    const std::string bound = "0." + std::to_string(100 + i);
    result = sum_alone(ranks[0], WithOption(TUTTI_NCCL_MAX_RELATIVE_ERROR, bound.c_str()).config, value);
    finish(0);
  }
  EXPECT_EQ(result, ncclInvalidUsage);
  expect_error_text("have had 64 different configs, the maximum");
}

}  // namespace
}  // namespace tutti::test
