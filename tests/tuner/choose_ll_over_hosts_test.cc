// Choices of LL on GPUs of several hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/tuner/candidates.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

// Only lanes along rails have LL, and only sums that are sent whole use them.
TEST(Candidates, HaveLl_WithLanesAlongRails) {
  Query query = query_on_hosts(Collective::all_reduce, 1 << 20, 2);
  add_ll_lanes(query, 16);
  query.protocol = "LL";
  std::vector<std::string_view> names;
  const std::vector<Candidate> found = candidates(query).value();
  for (const Candidate& candidate : found) {
    EXPECT_EQ(candidate.choice.protocol, Protocol::ll);
    EXPECT_LE(candidate.choice.channels, 16U);
    names.push_back(candidate.choice.algorithm);
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string_view>{"host_doubling", "host_one_shot"}));
  EXPECT_EQ(chosen(query), "host_one_shot");
  query.on_rails.clear();
  EXPECT_TRUE(candidates(query).value().empty()) << "no rails";
  query = query_on_hosts(Collective::all_to_all, 8, 2);
  add_ll_lanes(query, 16);
  query.protocol = "LL";
  EXPECT_TRUE(candidates(query).value().empty()) << "interpreted";
}

// Ranks of few hosts have slots for all messages of a step, and those of many GPUs send many messages.
TEST(ChooseForGpus, UsesLl_ForSmallBlocksBetweenFewHosts) {
  const auto choice_of = [](Collective collective, std::uint64_t bytes, Rank hosts, Rank size = 8) {
    Query query = query_on_hosts(collective, bytes, hosts);
    query.problem.groups = {std::vector<Rank>(hosts, size)};
    query.problem.ranks = hosts * size;
    add_ll_lanes(query, 16);
    return choose(query).value();
  };
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    for (const auto& [bytes, hosts] : {std::pair(1UL, 2U), {64UL << 10, 2U}, {60UL << 10, 3U}, {40UL << 10, 4U}}) {
      const Choice choice = choice_of(collective, bytes, hosts);
      EXPECT_EQ(choice.algorithm, "hierarchical") << bytes << ' ' << hosts;
      EXPECT_EQ(choice.protocol, Protocol::ll) << bytes << ' ' << hosts;
      EXPECT_EQ(choice.channels, (bytes + 4095) / 4096) << bytes << ' ' << hosts;
    }
    EXPECT_EQ(choice_of(collective, (40 << 10) + 1, 4).protocol, Protocol::simple);
    EXPECT_EQ(choice_of(collective, 1, 5).protocol, Protocol::simple);
    EXPECT_EQ(choice_of(collective, 1, 2, 9).protocol, Protocol::simple);
  }
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    EXPECT_EQ(choice_of(collective, 64 << 10, 2).channels, 2U) << "each rank of a host has a part";
    EXPECT_EQ(choice_of(collective, 512 << 10, 2).protocol, Protocol::ll);
    EXPECT_EQ(choice_of(collective, 512 << 10, 2).algorithm, "hierarchical");
    EXPECT_EQ(choice_of(collective, (512 << 10) + 1, 2).protocol, Protocol::simple);
    EXPECT_EQ(choice_of(collective, 1, 3).protocol, Protocol::simple);
  }
}

// Each message of 4 KiB takes the time of a proxy, so that few channels and hosts use LL.
TEST(ChooseForGpus, UsesLl_ForSmallSumsBetweenHosts) {
  const auto choice_of = [](std::uint64_t bytes, Rank hosts, std::uint32_t channels = 16) {
    Query query = query_on_hosts(Collective::all_reduce, bytes, hosts);
    add_ll_lanes(query, channels);
    return choose(query).value();
  };
  struct Case {
    std::uint64_t bytes;
    Rank hosts;
    std::string_view algorithm;
    Protocol protocol;
    std::uint32_t channels;
  };
  for (const Case& each : {Case{8, 2, "host_one_shot", Protocol::ll, 1},
                           {4097, 2, "host_one_shot", Protocol::ll, 2},
                           {64 << 10, 2, "host_one_shot", Protocol::ll, 16},
                           {(64 << 10) + 1, 2, "host_one_shot", Protocol::simple, 2},
                           {40 << 10, 4, "host_one_shot", Protocol::ll, 10},
                           {(40 << 10) + 1, 4, "host_one_shot", Protocol::simple, 1},
                           {8, 32, "host_one_shot", Protocol::ll, 1},
                           {4097, 32, "host_doubling", Protocol::ll, 2},
                           {16 << 10, 32, "host_doubling", Protocol::ll, 4},
                           {(16 << 10) + 1, 32, "host_one_shot", Protocol::simple, 1},
                           {8, 64, "host_doubling", Protocol::ll, 1}}) {
    const Choice choice = choice_of(each.bytes, each.hosts);
    EXPECT_EQ(choice.algorithm, each.algorithm) << each.bytes << ' ' << each.hosts;
    EXPECT_EQ(choice.protocol, each.protocol) << each.bytes << ' ' << each.hosts;
    EXPECT_EQ(choice.channels, each.channels) << each.bytes << ' ' << each.hosts;
  }
  EXPECT_EQ(choice_of(16 << 10, 2, 3).protocol, Protocol::simple) << "too few channels have lanes";
  Query few = query_on_hosts(Collective::all_reduce, 16 << 10, 2);
  add_ll_lanes(few, 16);
  few.local_channels = 2;
  EXPECT_EQ(choose(few).value().protocol, Protocol::simple) << "too few channels in the hosts";
  few.block_bytes = 8 << 10;
  EXPECT_EQ(choose(few).value().protocol, Protocol::ll);
  EXPECT_EQ(choice_of(8, 2, 0).protocol, Protocol::simple) << "no lanes of LL";
  Query query = query_on_hosts(Collective::all_reduce, 8, 2);
  add_ll_lanes(query, 16);
  query.protocol = "Simple";
  EXPECT_EQ(choose(query).value().protocol, Protocol::simple);
  query.protocol = "";
  query.compression = CompressionFormat::fp16;
  EXPECT_EQ(choose(query).value().protocol, Protocol::simple);
}

}  // namespace
}  // namespace tutti::test
