// Channels and positions of the staging ring of communicators of several hosts.
#include <gtest/gtest.h>

#include "src/plan/verify.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

// In the ring of communicators of several hosts, fewer channels have longer positions. The order of stages suits their
// number.
TEST(ChooseForGpus, DividesRingOfHosts) {
  Query query = query_on_hosts(Collective::all_reduce, 1 << 30, 8);
  query.ring = {.channels = 12, .positions = 4, .position_bytes = 2 << 20};
  query.by_switches = true;
  for (const char* name : {"host_staged", "tree_staged"})
    query.on_rails.emplace_back(find(Collective::all_reduce, name), RemotePeers::partners);
  for (const auto& [algorithm, has] :
       {std::pair{"host_staged", true}, {"tree_staged", true}, {"switch_staged", false}, {"two_shot_staged", false}})
    EXPECT_EQ(has_ring(query, algorithm), has) << algorithm;
  for (const auto& [algorithm, positions] : {std::pair{"host_staged", 6U}, {"tree_staged", 4U}}) {
    for (const std::uint32_t available : {12U, 5U}) {
      query.algorithm = algorithm;
      query.remote_channels.partners = available;
      const Choice choice = choose(query).value();
      EXPECT_EQ(choice.channels, available);
      EXPECT_EQ(choice.loop.ring, positions);
      const std::uint64_t used = choice.chunk_bytes * positions * available;
      EXPECT_LE(used, query.ring.bytes());
      EXPECT_GE(used, query.ring.bytes() * 9 / 10);
      EXPECT_TRUE(choice.staged && choice.by_switches);
      Loop loop = choice.loop;
      loop.chunks = 16;
      for (const Problem& problem :
           {Problem{.ranks = 6, .groups = {{3, 3}}}, {.ranks = 10, .groups = {{2, 2, 2, 2, 2}}}})
        EXPECT_EQ(verify(emit_plans(*find(Collective::all_reduce, algorithm), problem), loop).status().message(), "");
    }
  }
}

// Chunks of few channels overlap. Large sums have enough chunks for more.
TEST(ChooseForGpus, UsesMoreChannelsOfTheRingForLargeSums) {
  const auto channels = [](Collective collective, const char* algorithm, std::uint64_t bytes) {
    Query query = query_on_hosts(collective, bytes, 2);
    query.ring = {.channels = 16, .positions = 4, .position_bytes = 2 << 20};
    query.by_switches = true;
    query.on_rails = {partners(collective, algorithm)};
    query.algorithm = algorithm;
    return choose(query).value().channels;
  };
  const auto of_sum = [&](const char* algorithm, std::uint64_t mib) {
    return channels(Collective::all_reduce, algorithm, mib << 20);
  };
  EXPECT_EQ(of_sum("tree_staged", 16), 8U);
  for (const std::uint64_t mib : {32, 384}) EXPECT_EQ(of_sum("tree_staged", mib), 12U);
  EXPECT_EQ(of_sum("tree_staged", 448), 14U);
  for (const char* algorithm : {"tree_staged", "host_staged"}) EXPECT_EQ(of_sum(algorithm, 1 << 10), 16U);
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all})
    EXPECT_EQ(channels(collective, "host_staged", 1 << 30), 12U) << name(collective);
}

}  // namespace
}  // namespace tutti::test
