// LL between emulated hosts, over a carrier that stores to device memory.
#include <algorithm>
#include <cmath>
#include <thread>

#include "tests/base/case_sampling.h"
#include "tests/communicator/device/device_processes.h"
#include "tests/transports/memory_carrier.h"

namespace tutti::test {
namespace {

// Small calls use LL where the carrier stores to device memory of all ranks, and others Simple. More calls than slots
// reuse these.
TEST(DeviceNetworkLl, UsesLl_WhereCarrierReachesDevices) {
  std::size_t begin = 0;  // Slow builds run every fault, on one of the layouts.
  for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}}) {
    OneOf cases(2, begin++);
    const auto rig = host_rig({.thread_count = 4, .thread_blocks = 64, .memory_bytes = std::size_t{2} << 30});
    for (const Fault fault : {Fault::none, Fault::reports_late, Fault::halves_late, Fault::refuse_reach}) {
      if (!cases.takes()) continue;
      MemorySource carriers(fault == Fault::refuse_reach ? Fault::none : fault, fault);
      CommunicatorOptions options;
      options.update_agreement_hash();
      DeviceRanks ranks(*rig, std::move(Communicator::create_all(Hosts(host_of), options, &carriers)).value());
      const auto protocol_of = [&](std::uint64_t count, Collective collective = Collective::all_reduce, Rank root = 0) {
        const Problem problem = {.collective = collective, .ranks = ranks.size(), .root = root, .groups = {}};
        EXPECT_EQ(run_collective(ranks, 0, {problem, count, 0}), "") << count;
        return std::string(ranks[0].last_run().protocol);
      };
      const std::string small = fault != Fault::refuse_reach ? "LL" : "Simple";
      for (int turn = 0; turn < 2; ++turn) {
        for (const std::uint64_t count : {1U, 1000U, 3U, 2049U, 3000U, 100U, 1U, 4000U, 300'000U})
          EXPECT_EQ(protocol_of(count), count > 8000 ? "Simple" : small) << count;
        for (const std::uint64_t count : {1U, 999U, 2U, 500U, 1000U}) {
          for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter})
            EXPECT_EQ(protocol_of(count, collective), small) << name(collective) << ' ' << count;
          for (const Collective collective : {Collective::broadcast, Collective::reduce})
            EXPECT_EQ(protocol_of(count, collective, ranks.size() - 1), ranks.size() == 4 ? small : "Simple")
                << name(collective) << ' ' << count;
        }
      }
      EXPECT_EQ(run_collectives(ranks, 0, ranks.size()), "right");
      EXPECT_EQ(run_messages(ranks, 0, ranks.size(), 1000), "right");
    }
  }
}

// The same by RDMA, which ctest requests in a guest with soft-RoCE. Many calls, since words that arrive in part are
// rare.
TEST(DeviceNetworkLl, UsesLl_OverRdma) {
  if (config().transport != "verbs") GTEST_SKIP() << "TUTTI_TRANSPORT is not verbs";
  const auto rig = host_rig({.thread_count = 4, .orders_writes = false});
  CommunicatorOptions options = over_transport();
  options.update_agreement_hash();
  DeviceRanks ranks(*rig, std::move(Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), options)).value());
  constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter};
  for (std::uint32_t turn = 0; turn < 90; ++turn) {
    const Problem problem = {.collective = kCollectives[turn % 3], .ranks = 4, .groups = {}};
    ASSERT_EQ(run_collective(ranks, 0, {problem, 1 + turn * 37 % 1000, turn}), "") << turn;
    ASSERT_STREQ(ranks[0].last_run().protocol, "LL") << turn;
  }
}

constexpr std::uint64_t kSummed = 1000;

class LlRanks : public testing::Test {
 protected:
  LlRanks() {
    CommunicatorOptions options;
    options.update_agreement_hash();
    ranks_ = std::make_unique<DeviceRanks>(
        *rig_, std::move(Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), options, &carriers_)).value());
    for (Rank rank = 0; rank < kRanks; ++rank) buffers_.push_back(ranks_->take<float>(kGroup * kSummed, 1));
  }
  DeviceCall sum(Rank rank, std::uint64_t which = 0) {
    float* buffer = buffers_[rank] + which * kSummed;
    return ranks_->call(rank, call_of(Collective::all_reduce, DataType::float32, kSummed, buffer, buffer));
  }

  static constexpr Rank kRanks = 4;
  static constexpr std::uint64_t kGroup = 6;
  const std::unique_ptr<DeviceRig> rig_ = host_rig({.thread_count = 2});
  MemorySource carriers_;
  std::unique_ptr<DeviceRanks> ranks_;
  std::vector<float*> buffers_;
};

// Calls of a group run in one launch, one after the other on the same lanes.
TEST_F(LlRanks, RunGroups) {
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < kRanks; ++rank)
      for (std::uint64_t which = 0; which < kGroup; ++which) calls.push_back(sum(rank, which));
    const Status status = enqueue(calls);
    ASSERT_TRUE(status.ok()) << status.message();
    ranks_->synchronize();
    ASSERT_STREQ((*ranks_)[0].last_run().protocol, "LL");
    const auto expected = static_cast<float>(std::pow(kRanks, turn + 1));
    for (const float* buffer : buffers_)
      ASSERT_EQ(std::count(buffer, buffer + kGroup * kSummed, expected), kGroup * kSummed) << turn;
  }
}

// The rank on the host of the missing one waits for it directly. Others learn the name from that rank.
TEST_F(LlRanks, NameMissingRank) {
  for (Rank rank = 0; rank + 1 < kRanks; ++rank) {
    DeviceCall call = sum(rank);
    if (rank == 2) call.options.timeout_ms = 50;
    ASSERT_TRUE(enqueue({&call, 1}).ok());
  }
  ranks_->synchronize();
  for (Rank rank = 0; rank + 1 < kRanks; ++rank) {
    while (!ranks_->backend(rank).has_failed()) std::this_thread::yield();
    const Status status = (*ranks_)[rank].failure();
    EXPECT_EQ(status.code(), Code::timeout) << rank;
    EXPECT_NE(status.message().find("rank 2 waited too long for rank 3"), std::string::npos) << status.message();
  }
}

// Only these algorithms have lanes of LL between hosts, and only lanes along rails have room for them.
TEST(DeviceNetworkLl, RejectsForcedLl_OfOtherCalls) {
  const auto rig = host_rig({});
  MemorySource carriers;
  CommunicatorOptions options;
  options.protocol = "LL";
  options.update_agreement_hash();
  DeviceRanks ranks(
      *rig, std::move(Communicator::create_all(Hosts(std::vector<Rank>{0, 0, 1, 1}), options, &carriers)).value());
  const auto status_of = [&](Collective collective, const char* algorithm) {
    std::vector<DeviceCall> calls;
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      auto* buffer = ranks.take<float>(400, 1);
      calls.push_back(ranks.call(rank, call_of(collective, DataType::float32, 100, buffer, ranks.take<float>(400, 1))));
      calls.back().options.algorithm = algorithm;
      calls.back().options.update_agreement_hash();
    }
    Status status = enqueue(calls);
    ranks.synchronize();
    return status;
  };
  EXPECT_TRUE(status_of(Collective::all_reduce, "").ok());
  EXPECT_TRUE(status_of(Collective::all_reduce, "host_doubling").ok());
  EXPECT_TRUE(status_of(Collective::reduce_scatter, "").ok());
  for (const auto& [collective, algorithm] : {std::pair(Collective::all_gather, "ring"),
                                              {Collective::all_to_all, ""},
                                              {Collective::all_reduce, "hierarchical"}}) {
    const Status status = status_of(collective, algorithm);
    EXPECT_EQ(status.code(), Code::unsupported) << name(collective);
    EXPECT_NE(status.message().find("LL between hosts is for host_one_shot"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(status_of(Collective::all_reduce, "").ok()) << "a rejected call has no effect";
}

}  // namespace
}  // namespace tutti::test
