// Choices on GPUs of several hosts.
#include <gtest/gtest.h>

#include <vector>

#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

Query query_on_hosts(Collective collective, std::uint64_t block_bytes, Rank hosts) {
  Query query = query_on(collective, block_bytes);
  query.network = true;
  query.problem.groups = {std::vector<Rank>(hosts, 8)};
  query.problem.ranks = 8 * hosts;
  query.lane_channels = 3;
  query.rail_channels = 24;
  return query;
}

// Among algorithms that send as much between hosts, those on rails have more channels.
TEST(ChooseForGpus, PrefersAlgorithmsOnRails) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::reduce}) {
    const bool rooted = collective == Collective::reduce;
    const char* const usual = rooted ? "hierarchical_tree" : "hierarchical";
    Query query = query_on_hosts(collective, 1 << 20, 5);
    std::vector<const Algorithm*> on_rails;
    if (!rooted) on_rails.push_back(find(collective, "host_ring"));
    query.on_rails = on_rails;
    EXPECT_EQ(chosen(query), rooted ? "chain" : "host_ring");
    on_rails.push_back(find(collective, usual));
    query.on_rails = on_rails;
    EXPECT_EQ(chosen(query), usual);
    query.on_rails = {};
    query.rail_channels = 0;
    EXPECT_EQ(chosen(query), usual) << "there are no rails";
  }
}

// Recursive doubling sends whole sums, but has fewer rounds.
TEST(ChooseForGpus, ChoosesRecursiveDoubling_ForSmallSumsBetweenHosts) {
  EXPECT_EQ(chosen(query_on_hosts(Collective::all_reduce, 8, 2)), "recursive_doubling");
  EXPECT_EQ(chosen(query_on_hosts(Collective::all_reduce, 64 << 10, 2)), "recursive_doubling");
  EXPECT_EQ(chosen(query_on_hosts(Collective::all_reduce, (64 << 10) + 1, 2)), "hierarchical");
  EXPECT_EQ(chosen(query_on_hosts(Collective::all_reduce, 16 << 10, 8)), "recursive_doubling");
  EXPECT_EQ(chosen(query_on_hosts(Collective::all_reduce, 16 << 10, 64)), "hierarchical");
  EXPECT_EQ(chosen(query_on_hosts(Collective::all_reduce, 4 << 10, 64)), "recursive_doubling");
  Query compressed = query_on_hosts(Collective::all_reduce, 16 << 10, 2);
  compressed.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(compressed), "hierarchical");
}

// Halving and doubling send ever shorter messages, and need more rounds if the number of hosts is no power of two.
TEST(ChooseForGpus, ChoosesRingOfHosts_ForLargeSums) {
  const std::vector<const Algorithm*> on_rails = {find(Collective::all_reduce, "hierarchical"),
                                                  find(Collective::all_reduce, "host_ring")};
  const auto min_exponent = [&](Rank hosts) {  // log2 of the smallest size.
    for (int exponent = 18; exponent < 34; ++exponent) {
      Query query = query_on_hosts(Collective::all_reduce, std::uint64_t{1} << exponent, hosts);
      query.on_rails = on_rails;
      if (chosen(query) == "host_ring") return exponent;
      EXPECT_EQ(chosen(query), "hierarchical");
    }
    return 0;
  };
  EXPECT_EQ(min_exponent(4), 0) << "few hosts exchange sums directly";
  EXPECT_EQ(min_exponent(5), 24);
  EXPECT_EQ(min_exponent(8), 26);
  EXPECT_EQ(min_exponent(12), 25);
  EXPECT_EQ(min_exponent(64), 29);
  Query query = query_on_hosts(Collective::all_reduce, 1 << 30, 8);
  query.on_rails = {on_rails[0]};
  EXPECT_EQ(chosen(query), "hierarchical");
  query.on_rails = on_rails;
  query.max_channels = 1;
  query.block_bytes = 2 << 20;
  EXPECT_EQ(chosen(query), "host_ring") << "messages of one channel are long";
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "hierarchical");
  query.compression = CompressionFormat::none;
  query.problem.groups.push_back({4, 4});
  EXPECT_EQ(chosen(query), "hierarchical") << "racks";
}

// Algorithms on rails have more channels than others. Between hosts there is only Simple.
TEST(ChooseForGpus, UsesChannelsOfRails) {
  Query query = query_on_hosts(Collective::all_reduce, 64 << 20, 2);
  EXPECT_EQ(choose(query).value().channels, 3U);
  query.on_rails = {find(Collective::all_reduce, "hierarchical")};
  EXPECT_EQ(choose(query).value().channels, 24U);
  query.algorithm = "two_shot";
  EXPECT_EQ(choose(query).value().channels, 3U);
  query.block_bytes = 8;
  EXPECT_EQ(choose(query).value().protocol, Protocol::simple);
}

}  // namespace
}  // namespace tutti::test
