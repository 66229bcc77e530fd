// Sums by the switches of each of several emulated hosts, with lanes between the hosts.
#include <gtest/gtest.h>

#include "tests/ptx/switch_calls.h"

namespace tutti::test {
namespace {

constexpr const char* kAlgorithm = "host_staged";

// Requests the algorithm, which the tuner does not choose for hosts of few ranks.
std::string run_requested(const std::vector<Rank>& host_of, const char* multicast, const MemberWork& work,
                          const char* algorithm = kAlgorithm) {
  return run_ranks_on_hosts(host_of, multicast, work, algorithm);
}

std::string run_calls(const Member& member, std::span<const SwitchCall> calls, const char* algorithm = kAlgorithm) {
  for (const SwitchCall& call : calls) {
    const std::string result = run_switch_call(member, call, algorithm);
    if (result != "right") return result;
  }
  return "right";
}

// Consecutive ranks on a host, and on different hosts.
TEST(SwitchesOfHosts, Add) {
  constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 1},
                                   {DataType::float32, Reduction::sum, 3001},
                                   {DataType::bfloat16, Reduction::avg, 1005},
                                   {DataType::float64, Reduction::sum, 1007},
                                   {DataType::int32, Reduction::sum, 1001},  // Without switches.
                                   {.count = 1, .collective = Collective::all_gather},
                                   {.type = DataType::uint8, .count = 1003, .collective = Collective::all_gather},
                                   {.count = 1, .collective = Collective::reduce_scatter},
                                   {.type = DataType::bfloat16,
                                    .reduction = Reduction::avg,
                                    .count = 1005,
                                    .collective = Collective::reduce_scatter},
                                   {.type = DataType::int32, .count = 77, .collective = Collective::reduce_scatter}};
  for (const std::vector<Rank>& host_of :
       {std::vector<Rank>{0, 0, 1, 1}, {0, 0, 0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 1, 0, 1, 0, 1}}) {
    EXPECT_EQ(run_requested(host_of, "all",
                            [&](const Member& member) -> std::string {
                              if (!has_multicast(member.own)) return "no multicast object";
                              return run_calls(member, kCalls);
                            }),
              "right")
        << testing::PrintToString(host_of);
  }
}

// Ranks store blocks to the scratch of all ranks of their host. Consecutive ranks are on a host.
TEST(SwitchesOfHosts, ConnectRanksThatCollectBlocks) {
  constexpr SwitchCall kCalls[] = {
      {.count = 1, .collective = Collective::all_to_all},
      {.type = DataType::uint8, .count = 1003, .collective = Collective::all_to_all},
      {.type = DataType::bfloat16, .count = 3001, .collective = Collective::all_to_all, .skipped = 3}};
  for (const std::vector<Rank>& host_of : {std::vector<Rank>{0, 0, 1, 1}, {0, 0, 0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}}) {
    const auto work = [&](const Member& member) { return run_calls(member, kCalls); };
    EXPECT_EQ(run_requested(host_of, "all", work), "right") << testing::PrintToString(host_of);
  }
}

// Chunks go round the ring, in calls that follow each other.
TEST(SwitchesOfHosts, ReuseTheRing) {
  constexpr SwitchCall kCalls[] = {{.type = DataType::float32, .count = 1'100'001, .channels = 1},
                                   {.count = 5},
                                   {.count = 300'001, .collective = Collective::all_gather, .channels = 1},
                                   {.count = 300'001, .collective = Collective::reduce_scatter, .channels = 1},
                                   {.count = 300'001, .collective = Collective::all_to_all, .channels = 1},
                                   {.count = 7, .collective = Collective::all_gather}};
  EXPECT_EQ(run_requested({0, 0, 1, 1}, "all", [&](const Member& member) { return run_calls(member, kCalls); }),
            "right");
}

// Trees of 2 to 5 hosts, the largest with two hosts between the root and leaves, beside calls that divide the ring
// otherwise.
TEST(SwitchesOfHosts, AddThroughTrees) {
  constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 1},
                                   {DataType::bfloat16, Reduction::avg, 1005},
                                   {DataType::float64, Reduction::sum, 3007},
                                   {DataType::int32, Reduction::sum, 1001},  // Without switches.
                                   {.type = DataType::float32, .count = 600'001, .channels = 1},
                                   {.count = 5}};
  for (const std::vector<Rank>& host_of :
       {std::vector<Rank>{0, 0, 1, 1}, {0, 1, 2, 0, 1, 2}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4}}) {
    const auto work = [&](const Member& member) -> std::string {
      for (const char* algorithm : {"tree_staged", "host_staged", "tree_staged"}) {
        const std::string result = run_calls(member, kCalls, algorithm);
        if (result != "right") return algorithm + (": " + result);
      }
      return "right";
    };
    EXPECT_EQ(run_requested(host_of, "all", work, "tree_staged"), "right") << testing::PrintToString(host_of);
  }
}

// All ranks of all hosts fall back together, if a rank cannot bind its memory.
TEST(SwitchesOfHosts, AreNotUsed_WhenOneRankCannotBind) {
  constexpr SwitchCall kCalls[] = {{DataType::float32, Reduction::sum, 3001}};
  const auto work = [&](const Member& member) -> std::string {
    return has_multicast(member.own) ? "has a multicast object" : run_calls(member, kCalls);
  };
  const std::string log = run_requested({0, 0, 1, 1}, "last_fails", work);
  const std::string sentence = "right: sums do not use the switches between the GPUs, because of rank 3: ";
  EXPECT_EQ(log.substr(0, sentence.size()), sentence);
}

// For two hosts.
std::string has_no_ring(const Member& member) {
  const PeerSet& peers = member.own.backend(0).peers();
  if (peers.ring().channels != 0 || has_multicast(member.own)) return "has a ring";
  const std::size_t lanes_bytes = (member.ranks / 2 - 1) * peers.lanes().lanes_bytes();
  std::size_t left = 0, total = 0;
  if (cudaMemGetInfo(&left, &total) != cudaSuccess) return "cannot read the used memory";
  const std::size_t bytes = std::max(member.own.backend(0).device_bytes(), total - left);
  return bytes < lanes_bytes + (48 << 20) ? "right" : std::to_string(bytes) + " bytes of memory";
}

// The ranks are in one process, so that no lanes share the ring's memory.
TEST(SwitchesOfHosts, FreeTheRing_WhenOneRankCannotBind) {
  const std::string log = run_ranks_on_hosts({0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}, "last_fails", has_no_ring);
  const std::string sentence = "right: sums do not use the switches between the GPUs, because of rank 11: ";
  EXPECT_EQ(log.substr(0, sentence.size()), sentence);
}

// The tuner chooses no plan that needs it.
TEST(SwitchesOfHosts, HaveNoRing_WhereHostsHaveFewRanks) {
  EXPECT_EQ(run_ranks_on_hosts({0, 0, 1, 1}, "all", has_no_ring), "right");
}

// NCCL_ALGO=NVLS is for one host, and NVLSTree for types that switches add, where there is a ring.
TEST(SwitchesOfHosts, IgnoreNcclsVariable_WhereTheyDoNotServe) {
  const auto runs = [](const Member& member, DataType type, const char* algorithm) {
    return run_switch_call(member, {.type = type, .count = 3001, .by_nccl = true}, algorithm);
  };
  const auto work = [&](const Member& member) -> std::string {
    for (const char* algorithm : {"switch_staged", "tree_staged"}) {
      const std::string ran = runs(member, DataType::float32, algorithm);
      if (ran != "ran host_one_shot") return algorithm + (": " + ran);
    }
    return "right";
  };
  for (const char* multicast : {"none", "all"})  // The log may follow.
    EXPECT_EQ(run_ranks_on_hosts({0, 0, 1, 1}, multicast, work).substr(0, 5), "right");
  const auto with_ring = [&](const Member& member) -> std::string {
    if (const std::string ran = runs(member, DataType::float32, "tree_staged"); ran != "right") return ran;
    const std::string ran = runs(member, DataType::int32, "tree_staged");
    return ran == "ran host_one_shot" ? "right" : ran;
  };
  EXPECT_EQ(run_requested({0, 0, 1, 1}, "all", with_ring, "tree_staged").substr(0, 5), "right");
}

// No plan uses them.
TEST(SwitchesOfHosts, AreNotBound_WhereHostsDiffer) {
  const auto work = [](const Member& member) -> std::string {
    return has_multicast(member.own) ? "has a multicast object" : "right";
  };
  EXPECT_EQ(run_requested({0, 0, 1}, "all", work), "right");
}

// Without multicast objects there is no ring between hosts, and a request of the algorithm is an error.
TEST(SwitchesOfHosts, AreRequired) {
  const auto work = [](const Member& member) -> std::string {
    return run_switch_call(member, {DataType::float32, Reduction::sum, 3001}, kAlgorithm);
  };
  const std::string error = run_requested({0, 0, 1, 1}, "none", work);
  EXPECT_NE(error.find("'host_staged' needs several GPUs of each of several hosts, connected by NVSwitches"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace tutti::test
