// Choices on GPUs of several hosts.
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "src/plan/verify.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

Query query_on_hosts(Collective collective, std::uint64_t block_bytes, Rank hosts) {
  Query query = query_on(collective, block_bytes);
  query.network = true;
  query.problem.groups = {std::vector<Rank>(hosts, 8)};
  query.problem.ranks = 8 * hosts;
  query.lane_channels = 3;
  query.remote_channels = {.rail = 16, .partners = 24};
  return query;
}

std::pair<const Algorithm*, RemotePeers> partners(Collective collective, std::string_view algorithm) {
  return {find(collective, algorithm), RemotePeers::partners};
}

// Communicators reject the other protocols.
TEST(Candidates, HaveOnlySimple_BetweenHosts) {
  Query query = query_on_hosts(Collective::all_reduce, 1 << 20, 2);
  for (const char* protocol : {"LL", "LL128"}) {
    query.protocol = protocol;
    EXPECT_TRUE(candidates(query).value().empty()) << protocol;
  }
  query.protocol = "Simple";
  EXPECT_FALSE(candidates(query).value().empty());
}

// Among algorithms that send as much between hosts, those on rails have more channels.
TEST(ChooseForGpus, PrefersAlgorithmsOnRails) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    Query query = query_on_hosts(collective, 8 << 20, 5);
    query.on_rails = {partners(collective, "host_ring")};
    EXPECT_EQ(chosen(query), "host_ring");
    query.on_rails.emplace_back(find(collective, "hierarchical"), RemotePeers::rail);
    EXPECT_EQ(chosen(query), "host_ring") << "it has more channels";
    query.on_rails.back().second = RemotePeers::partners;
    EXPECT_EQ(chosen(query), "hierarchical");
    query.on_rails = {};
    query.remote_channels = {};
    EXPECT_EQ(chosen(query), "hierarchical") << "there are no rails";
  }
}

// Small sums are sent whole. From 64 KiB to 2 MiB, up to 64 ranks on more than 4 hosts send parts to all others.
TEST(ChooseForGpus, SendsWholeSums_BetweenHosts) {
  const auto all_reduce = [](std::uint64_t bytes, Rank hosts) {
    Query query = query_on_hosts(Collective::all_reduce, bytes, hosts);
    // With more than 4 hosts, rails connect neighbours and hosts whose distance is a power of two.
    const bool has_power_of_two = std::has_single_bit(hosts);
    query.on_rails = {partners(Collective::all_reduce, "hierarchical")};
    if (hosts <= 4) query.on_rails.push_back(partners(Collective::all_reduce, "host_one_shot"));
    if (hosts <= 4 || has_power_of_two) query.on_rails.push_back(partners(Collective::all_reduce, "host_doubling"));
    return query;
  };
  EXPECT_EQ(chosen(all_reduce(8, 2)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(1 << 20, 2)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce((1 << 20) + 1, 2)), "hierarchical");
  EXPECT_EQ(chosen(all_reduce(256 << 10, 4)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 4)), "hierarchical");
  EXPECT_EQ(chosen(all_reduce(63 << 10, 8)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(64 << 10, 8)), "host_doubling");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 8)), "host_doubling");
  EXPECT_EQ(chosen(all_reduce((512 << 10) + 1, 8)), "two_shot");
  EXPECT_EQ(chosen(all_reduce(2 << 20, 8)), "two_shot");
  EXPECT_EQ(chosen(all_reduce((2 << 20) + 1, 8)), "hierarchical");
  EXPECT_EQ(chosen(all_reduce(8 << 10, 64)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(9 << 10, 64)), "host_doubling");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 64)), "host_doubling");
  EXPECT_EQ(chosen(all_reduce((512 << 10) + 1, 64)), "hierarchical");

  // Without recursive doubling on rails.
  EXPECT_EQ(chosen(all_reduce(63 << 10, 6)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(64 << 10, 6)), "two_shot");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 6)), "two_shot");
  EXPECT_EQ(chosen(all_reduce(64 << 10, 12)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(96 << 10, 12)), "hierarchical");

  Query query = all_reduce(16 << 10, 2);
  EXPECT_EQ(choose(query).value().channels, 1U);
  query.block_bytes = 64 << 10;
  EXPECT_EQ(choose(query).value().channels, 4U) << "each channel reads all data";
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "hierarchical");
}

// Hosts of different sizes have no peers at the same position.
TEST(ChooseForGpus, ChoosesRecursiveDoubling_ForSmallSumsBetweenUnevenHosts) {
  Query query = query_on_hosts(Collective::all_reduce, 64 << 10, 2);
  query.problem.groups = {{7, 9}};
  EXPECT_EQ(chosen(query), "recursive_doubling");
  ++query.block_bytes;
  EXPECT_EQ(chosen(query), "hierarchical");
}

// The root sends to all ranks of other hosts, unless its port would limit that.
TEST(ChooseForGpus, SendsSmallBlocksDirectly_BetweenHosts) {
  EXPECT_EQ(chosen(query_on_hosts(Collective::broadcast, 256 << 10, 2)), "direct");
  EXPECT_EQ(chosen(query_on_hosts(Collective::broadcast, 128 << 10, 4)), "direct");
  EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, 128 << 10, 2)), "direct");
  EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, 128 << 10, 3)), "hierarchical");
  EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, 128 << 10, 4)), "binary_tree");
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    EXPECT_EQ(chosen(query_on_hosts(collective, 256 << 10, 4)), "binary_tree");
    EXPECT_EQ(chosen(query_on_hosts(collective, 256 << 10, 64)), "binary_tree");
    EXPECT_EQ(chosen(query_on_hosts(collective, 512 << 10, 4)), "hierarchical");
    EXPECT_EQ(chosen(query_on_hosts(collective, 8, 80)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 8, 81)), "binary_tree") << "many messages";
  }
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    EXPECT_EQ(chosen(query_on_hosts(collective, 16 << 10, 2)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 2)), "hierarchical");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 3)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 64 << 10, 3)), "hierarchical");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 24)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 32)), "hierarchical");
  }
}

// With many peers, ranks forward blocks within their hosts, so that each rank sends along its rail.
TEST(ChooseForGpus, ForwardsBlocksWithinHosts) {
  const auto all_to_all = [](std::uint64_t bytes, Rank hosts, Rank size) {
    Query query = query_on_hosts(Collective::all_to_all, bytes, hosts);
    query.problem.groups = {std::vector<Rank>(hosts, size)};
    query.problem.ranks = hosts * size;
    query.on_rails = {{find(Collective::all_to_all, "hierarchical"), RemotePeers::rail}};
    return query;
  };
  for (const std::uint64_t bytes : {256U, 64U << 10, 16U << 20}) {
    EXPECT_EQ(chosen(all_to_all(bytes, 3, 8)), "direct");
    EXPECT_EQ(chosen(all_to_all(bytes, 4, 8)), "hierarchical");
    EXPECT_EQ(chosen(all_to_all(bytes, 8, 4)), "direct");
    EXPECT_EQ(chosen(all_to_all(bytes, 16, 4)), "hierarchical");
    EXPECT_EQ(chosen(all_to_all(bytes, 32, 2)), "direct");
  }
  Query query = all_to_all(8 << 10, 8, 8);
  EXPECT_EQ(choose(query).value().channels, 4U) << "one for each 2 KiB of a block";
  EXPECT_EQ(choose(all_to_all(1 << 10, 64, 8)).value().channels, 4U) << "one for each 256 bytes";
  query.block_bytes = 1 << 20;
  EXPECT_EQ(choose(query).value().channels, 16U);
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "direct") << "forwarded blocks would be rounded twice";
  query.compression = CompressionFormat::none;
  query.on_rails = {};
  EXPECT_EQ(chosen(query), "direct") << "there are few channels between all ranks";
  EXPECT_EQ(chosen(all_to_all(8 << 10, 64, 8)), "hierarchical");
  EXPECT_EQ(chosen(all_to_all(8 << 10, 65, 8)), "direct") << "a message has parts of 65 blocks";
  EXPECT_EQ(chosen(all_to_all(8 << 10, 2, 72)), "direct") << "a message has parts of 72 blocks";
  query = all_to_all(8 << 10, 8, 8);
  query.problem.groups[0] = {16, 4, 4, 8, 8, 8, 8, 8};
  EXPECT_EQ(chosen(query), "direct") << "hosts differ";
}

// Rings need a round for each host, but their lanes have more memory.
TEST(ChooseForGpus, SendsBlocksToAllOfARail_UnlessLarge) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    const auto choice = [&](std::uint64_t bytes, Rank hosts) {
      Query query = query_on_hosts(collective, bytes, hosts);
      query.on_rails = {partners(collective, "host_ring"), {find(collective, "hierarchical"), RemotePeers::rail}};
      return chosen(query);
    };
    EXPECT_EQ(choice(32 << 10, 8), "direct");
    EXPECT_EQ(choice(33 << 10, 8), "hierarchical");
    EXPECT_EQ(choice(512 << 10, 8), "hierarchical");
    EXPECT_EQ(choice(513 << 10, 8), "host_ring");
    EXPECT_EQ(choice(256 << 10, 16), "hierarchical");
    EXPECT_EQ(choice(257 << 10, 16), "host_ring");
    EXPECT_EQ(choice(64 << 10, 32), "host_ring");
  }
}

// Halving and doubling send ever shorter messages, and need more rounds if the number of hosts is no power of two.
TEST(ChooseForGpus, ChoosesRingOfHosts_ForLargeSums) {
  const decltype(Query::on_rails) on_rails = {partners(Collective::all_reduce, "hierarchical"),
                                              partners(Collective::all_reduce, "host_ring")};
  const auto min_exponent = [&](Rank hosts) {  // log2 of the smallest size.
    for (int exponent = 22; exponent < 34; ++exponent) {
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
  query.block_bytes = 4 << 20;
  EXPECT_EQ(chosen(query), "host_ring") << "messages of one channel are long";
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "hierarchical");
  query.compression = CompressionFormat::none;
  query.problem.groups.push_back({4, 4});
  EXPECT_EQ(chosen(query), "hierarchical") << "racks";
}

// Sums that are not sent whole use the switches of each host, if there are at most 32 hosts of at least 6 ranks.
TEST(ChooseForGpus, UsesSwitchesOfHosts) {
  const auto query_with_switches = [](std::uint64_t bytes, Rank hosts, Rank size = 8) {
    Query query = query_on_hosts(Collective::all_reduce, bytes, hosts);
    query.problem.groups = {std::vector<Rank>(hosts, size)};
    query.problem.ranks = size * hosts;
    query.by_switches = true;
    query.ring = {.channels = 24, .positions = 6};
    for (const char* name : {"host_one_shot", "host_staged"})
      query.on_rails.emplace_back(find(Collective::all_reduce, name),
                                  hosts > 4 ? RemotePeers::rail : RemotePeers::partners);
    return query;
  };
  for (const Rank hosts : {2U, 4U, 5U, 16U, 32U}) {
    const std::uint64_t whole = (1 << 20) / (hosts - 1);
    EXPECT_EQ(chosen(query_with_switches(whole, hosts)), "host_one_shot") << hosts;
    EXPECT_EQ(chosen(query_with_switches(whole + 1, hosts)), "host_staged") << hosts;
    EXPECT_EQ(chosen(query_with_switches(1 << 30, hosts)), "host_staged") << hosts;
  }
  constexpr std::uint64_t kBytes = 64 << 20;
  EXPECT_EQ(chosen(query_with_switches(kBytes, 4, 6)), "host_staged");
  EXPECT_NE(chosen(query_with_switches(kBytes, 4, 5)), "host_staged");
  EXPECT_NE(chosen(query_with_switches(kBytes, 33)), "host_staged");
  Query query = query_with_switches(kBytes, 4);
  query.protocol = "Simple";
  EXPECT_EQ(chosen(query), "host_staged");
  query.compression = CompressionFormat::bf16;
  EXPECT_NE(chosen(query), "host_staged");
  query.compression = CompressionFormat::none;
  query.by_switches = false;
  EXPECT_NE(chosen(query), "host_staged") << "switches do not add this type";
  query.by_switches = true;
  query.on_rails.pop_back();
  EXPECT_NE(chosen(query), "host_staged") << "there are few channels";
  query = query_with_switches(kBytes, 4);
  query.ring = {};
  EXPECT_NE(chosen(query), "host_staged") << "there is no ring";
}

Query query_with_blocks(Collective collective, std::uint64_t bytes, Rank hosts) {
  Query query = query_on_hosts(collective, bytes, hosts);
  query.problem.groups = {std::vector<Rank>(hosts, 8)};
  query.problem.ranks = 8 * hosts;
  query.by_switches = true;
  query.ring = {.channels = 24, .positions = 6, .position_bytes = 512 << 10};
  query.remote_channels = {.rail = 24, .partners = 24};
  for (const char* name : {"hierarchical", "host_staged"})
    query.on_rails.emplace_back(find(collective, name), RemotePeers::rail);
  return query;
}

// Blocks above 8 KiB pass the switches, up to a total over the hosts, since a port carries more than with lanes.
TEST(ChooseForGpus, MovesBlocksBySwitchesOfHosts) {
  constexpr std::uint64_t kMax = 8 << 10, kTotal = 4 << 20;
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    for (const Rank hosts : {2U, 3U, 4U, 8U, 32U}) {
      const bool few = collective == Collective::all_gather && hosts < 4;
      const std::uint64_t max = few ? 256 << 10 : kTotal / hosts;
      EXPECT_EQ(chosen(query_with_blocks(collective, kMax, hosts)), "direct") << hosts;
      EXPECT_EQ(chosen(query_with_blocks(collective, kMax + 1, hosts)), "host_staged") << hosts;
      EXPECT_EQ(chosen(query_with_blocks(collective, max, hosts)), "host_staged") << hosts;
      EXPECT_NE(chosen(query_with_blocks(collective, max + 1, hosts)), "host_staged") << hosts;
    }
    EXPECT_NE(chosen(query_with_blocks(collective, 64 << 10, 33)), "host_staged");
    Query query = query_with_blocks(collective, 64 << 10, 8);
    query.by_switches = false;
    EXPECT_NE(chosen(query), "host_staged") << "switches do not add this type";
  }
}

// A position of the ring has a part of the blocks of all ranks. Channels move a part each, as long as there are enough.
TEST(ChooseForGpus, DividesBlocksAmongChannels_BySwitchesOfHosts) {
  const auto channels = [](std::uint64_t bytes, Rank hosts) {
    return choose(query_with_blocks(Collective::all_gather, bytes, hosts)).value().channels;
  };
  EXPECT_EQ(channels(9 << 10, 2), 1U) << "a channel moves 16 KiB at least";
  EXPECT_EQ(channels(17 << 10, 2), 2U);
  EXPECT_EQ(channels(16 << 10, 8), 2U) << "parts of 8 KiB";
  EXPECT_EQ(channels((16 << 10) + 1, 8), 3U);
  EXPECT_EQ(channels(512 << 10, 8), 24U);
}

// The ring of communicators of several hosts is for host_staged alone, whose fewer channels have longer positions.
TEST(ChooseForGpus, DividesRingOfHosts) {
  Query query = query_on_hosts(Collective::all_reduce, 64 << 20, 8);
  query.ring = {.channels = 24, .positions = 6, .position_bytes = 512 << 10};
  query.by_switches = true;
  query.on_rails = {{find(Collective::all_reduce, "host_staged"), RemotePeers::rail}};
  for (const auto& [algorithm, has] :
       {std::pair{"host_staged", true}, {"switch_staged", false}, {"two_shot_staged", false}})
    EXPECT_EQ(has_ring(query, algorithm), has) << algorithm;
  const Choice choice = choose(query).value();
  EXPECT_EQ(choice.channels, 16U);
  EXPECT_EQ(choice.chunk_bytes, (512U << 10) * 24 / 16);
  EXPECT_TRUE(choice.staged && choice.by_switches);
  for (const std::uint32_t positions : {4U, 5U, 6U}) {  // The order of stages suits their number.
    query.ring.positions = positions;
    Loop loop = choose(query).value().loop;
    loop.chunks = 16;
    const Problem problem = {.ranks = 6, .groups = {{3, 3}}};
    EXPECT_EQ(verify(emit_plans(*find(Collective::all_reduce, "host_staged"), problem), loop).status().message(), "")
        << positions;
  }
}

// Algorithms on rails have more channels than others. Between hosts there is only Simple.
TEST(ChooseForGpus, UsesChannelsOfRails) {
  Query query = query_on_hosts(Collective::all_reduce, 64 << 20, 2);
  EXPECT_EQ(choose(query).value().channels, 3U);
  query.on_rails = {partners(Collective::all_reduce, "hierarchical")};
  EXPECT_EQ(choose(query).value().channels, 24U);
  query.algorithm = "two_shot";
  EXPECT_EQ(choose(query).value().channels, 3U);
  query.block_bytes = 8;
  EXPECT_EQ(choose(query).value().protocol, Protocol::simple);
}

}  // namespace
}  // namespace tutti::test
