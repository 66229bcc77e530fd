// Choices on GPUs of several hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/plan/verify.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

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
    Query query = query_on_hosts(collective, 1 << 20, 5);
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

// Small sums are sent whole, those of more than 4 hosts by recursive doubling from a size on.
TEST(ChooseForGpus, SendsWholeSums_BetweenHosts) {
  const auto all_reduce = [](std::uint64_t bytes, Rank hosts) {
    Query query = query_on_hosts(Collective::all_reduce, bytes, hosts);
    query.on_rails = {partners(Collective::all_reduce, hosts > 4 ? "host_tree" : "hierarchical")};
    for (const char* name : {"host_one_shot", "host_doubling"})
      query.on_rails.emplace_back(find(Collective::all_reduce, name), RemotePeers::rail);
    return query;
  };
  EXPECT_EQ(chosen(all_reduce(8, 2)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 2)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce((512 << 10) + 1, 2)), "hierarchical");
  EXPECT_EQ(chosen(all_reduce(256 << 10, 4)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 4)), "hierarchical");
  EXPECT_EQ(chosen(all_reduce((1 << 20) / 7, 8)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(150 << 10, 8)), "host_doubling");
  EXPECT_EQ(chosen(all_reduce(512 << 10, 8)), "host_doubling");
  EXPECT_EQ(chosen(all_reduce((512 << 10) + 1, 8)), "host_tree");
  EXPECT_EQ(chosen(all_reduce(16 << 10, 64)), "host_one_shot");
  EXPECT_EQ(chosen(all_reduce(17 << 10, 64)), "host_doubling");

  Query query = all_reduce(150 << 10, 8);
  query.on_rails.pop_back();
  EXPECT_EQ(chosen(query), "host_tree") << "recursive doubling has few channels";

  query = all_reduce(16 << 10, 2);
  EXPECT_EQ(choose(query).value().channels, 1U);
  query.block_bytes = 128 << 10;
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
    EXPECT_EQ(chosen(query_on_hosts(collective, 256 << 10, 7)), "binary_tree");
    EXPECT_EQ(chosen(query_on_hosts(collective, 512 << 10, 4)), "hierarchical");
    EXPECT_EQ(chosen(query_on_hosts(collective, 8, 80)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 8, 81)), "binary_tree") << "many messages";
    EXPECT_EQ(chosen(query_on_hosts(collective, 8 << 20, 8)), "hierarchical");
  }
  EXPECT_EQ(chosen(query_on_hosts(Collective::broadcast, 256 << 10, 64)), "binary_tree");
  EXPECT_EQ(chosen(query_on_hosts(Collective::broadcast, 4 << 20, 8)), "hierarchical");
  EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, 4 << 20, 7)), "hierarchical");
  for (const Rank hosts : {8U, 64U}) {
    const std::uint64_t min = (2 << 20) / hosts, max = std::uint64_t{512 << 10} * hosts;
    EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, min, hosts)), "binary_tree");
    EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, min + 1, hosts)), "hierarchical_tree");
    EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, max, hosts)), "hierarchical_tree");
    EXPECT_EQ(chosen(query_on_hosts(Collective::reduce, max + 1, hosts)), "hierarchical");
  }
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    EXPECT_EQ(chosen(query_on_hosts(collective, 16 << 10, 2)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 2)), "hierarchical");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 3)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 64 << 10, 3)), "hierarchical");
    EXPECT_EQ(chosen(query_on_hosts(collective, 32 << 10, 16)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 4 << 10, 17)), "direct");
    EXPECT_EQ(chosen(query_on_hosts(collective, 5 << 10, 17)), "hierarchical") << "many messages";
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

// Rings need a round for each host, but their lanes have more memory. Large blocks fill the slots along a rail, too.
TEST(ChooseForGpus, SendsBlocksToAllOfARail_UnlessMedium) {
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
    EXPECT_EQ(choice((2 << 20) - 1, 16), "host_ring");
    EXPECT_EQ(choice(2 << 20, 16), "hierarchical");
    EXPECT_EQ(choice(2 << 20, 17), "host_ring");
    EXPECT_EQ(choice(16 << 10, 32), "hierarchical");
    EXPECT_EQ(choice(17 << 10, 32), "host_ring");
  }
}

// Halving and doubling send ever shorter messages, and their lanes have few channels with more than 4 hosts.
TEST(ChooseForGpus, ChoosesTreesOfHosts_ForLargeSums) {
  const auto all_reduce = [](std::uint64_t bytes, Rank hosts) {
    Query query = query_on_hosts(Collective::all_reduce, bytes, hosts);
    query.on_rails = {partners(Collective::all_reduce, "host_tree")};
    return query;
  };
  EXPECT_EQ(chosen(all_reduce(1 << 30, 2)), "hierarchical") << "each sends half of its sums to the other";
  for (const Rank hosts : {3U, 4U}) {
    EXPECT_EQ(chosen(all_reduce((32 << 20) - 1, hosts)), "hierarchical");
    EXPECT_EQ(chosen(all_reduce(32 << 20, hosts)), "host_tree");
  }
  for (const Rank hosts : {5U, 8U, 64U}) EXPECT_EQ(chosen(all_reduce(2 << 20, hosts)), "host_tree");
  Query query = all_reduce(1 << 30, 8);
  EXPECT_EQ(choose(query).value().channels, 24U);
  query.block_bytes = 4 << 20;
  EXPECT_EQ(choose(query).value().channels, 8U) << "long messages";
  query.on_rails.back().second = RemotePeers::rail;
  EXPECT_EQ(chosen(query), "hierarchical") << "there are few lanes to the hosts of the trees";
  query = all_reduce(4 << 20, 8);
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "host_tree");
  EXPECT_EQ(choose(query).value().channels, 8U);
  query.compression = CompressionFormat::none;
  query.problem.groups.push_back({4, 4});
  EXPECT_EQ(chosen(query), "hierarchical") << "racks";
}

// Sums that are not sent whole use the switches of each host, if hosts have at least 6 ranks. Each of few hosts sends
// to all others. Large sums pass trees, whose messages have the same length for any number of hosts.
TEST(ChooseForGpus, UsesSwitchesOfHosts) {
  const auto query_with_switches = [](std::uint64_t bytes, Rank hosts, Rank size = 8) {
    Query query = query_on_hosts(Collective::all_reduce, bytes, hosts);
    query.problem.groups = {std::vector<Rank>(hosts, size)};
    query.problem.ranks = size * hosts;
    query.by_switches = true;
    query.ring = {.channels = 12, .positions = 4};
    query.on_rails = {partners(Collective::all_reduce, "tree_staged")};
    for (const char* name : {"host_one_shot", "host_staged"})
      query.on_rails.emplace_back(find(Collective::all_reduce, name),
                                  hosts > 4 ? RemotePeers::rail : RemotePeers::partners);
    return query;
  };
  for (const Rank hosts : {3U, 4U}) EXPECT_EQ(chosen(query_with_switches(1 << 30, hosts)), "host_staged") << hosts;
  for (const Rank hosts : {2U, 5U, 16U, 64U}) {
    const std::uint64_t whole = std::min((1U << 20) / (hosts - 1), 512U << 10), parts = (48U << 20) / hosts;
    EXPECT_EQ(chosen(query_with_switches(whole, hosts)), "host_one_shot") << hosts;
    EXPECT_EQ(chosen(query_with_switches(whole + 1, hosts)), "host_staged") << hosts;
    EXPECT_EQ(chosen(query_with_switches(parts, hosts)), "host_staged") << hosts;
    EXPECT_EQ(chosen(query_with_switches(parts + 1, hosts)), "tree_staged") << hosts;
  }
  EXPECT_EQ(chosen(query_with_switches(512 << 10, 65)), "tree_staged") << "many messages";
  // Recursive doubling sends few messages.
  const auto with_doubling = [&](std::uint64_t bytes, Rank hosts) {
    Query query = query_with_switches(bytes, hosts);
    query.on_rails.emplace_back(find(Collective::all_reduce, "host_doubling"), RemotePeers::rail);
    return chosen(query);
  };
  EXPECT_EQ(with_doubling(128 << 10, 33), "host_doubling");
  EXPECT_EQ(with_doubling((128 << 10) + 1, 33), "host_staged");
  EXPECT_EQ(with_doubling(128 << 10, 32), "host_staged");
  constexpr std::uint64_t kBytes = 64 << 20;
  EXPECT_EQ(chosen(query_with_switches(kBytes, 8, 6)), "tree_staged");
  EXPECT_NE(chosen(query_with_switches(kBytes, 8, 5)), "tree_staged");
  Query query = query_with_switches(kBytes, 8);
  query.protocol = "Simple";
  EXPECT_EQ(chosen(query), "tree_staged");
  query.compression = CompressionFormat::bf16;
  EXPECT_NE(chosen(query), "tree_staged");
  query.compression = CompressionFormat::none;
  query.by_switches = false;
  EXPECT_NE(chosen(query), "tree_staged") << "switches do not add this type";
  query.by_switches = true;
  query.on_rails.erase(query.on_rails.begin());
  EXPECT_NE(chosen(query), "tree_staged") << "there are few channels";
  query = query_with_switches(kBytes, 8);
  query.ring = {};
  EXPECT_NE(chosen(query), "tree_staged") << "there is no ring";
  // In racks, sums that are sent whole to all GPUs of the rack are short.
  EXPECT_EQ(chosen(query_with_switches(3 << 10, 2, 72)), "host_one_shot");
  EXPECT_EQ(chosen(query_with_switches(4 << 10, 2, 72)), "host_staged");
  EXPECT_EQ(chosen(query_with_switches(kBytes, 2, 72)), "tree_staged");
}

Query query_with_blocks(Collective collective, std::uint64_t bytes, Rank hosts) {
  Query query = query_on_hosts(collective, bytes, hosts);
  query.problem.groups = {std::vector<Rank>(hosts, 8)};
  query.problem.ranks = 8 * hosts;
  query.by_switches = true;
  query.ring = {.channels = 24, .positions = 3, .position_bytes = 1 << 20};
  query.remote_channels = {.rail = 24, .partners = 24};
  for (const char* name : {"hierarchical", "host_staged"})
    query.on_rails.emplace_back(find(collective, name), RemotePeers::rail);
  return query;
}

// Short blocks pass the switches, up to a total over the hosts, since a port carries more than with lanes.
TEST(ChooseForGpus, MovesBlocksBySwitchesOfHosts) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    for (const Rank hosts : {2U, 3U, 8U, 16U, 17U, 64U}) {
      const std::uint64_t max = (hosts > 16 ? 2 << 20 : 1 << 20) / hosts;
      EXPECT_EQ(chosen(query_with_blocks(collective, 1, hosts)), "host_staged") << hosts;
      EXPECT_EQ(chosen(query_with_blocks(collective, max, hosts)), "host_staged") << hosts;
      EXPECT_NE(chosen(query_with_blocks(collective, max + 1, hosts)), "host_staged") << hosts;
    }
    EXPECT_NE(chosen(query_with_blocks(collective, 8 << 10, 65)), "host_staged");
    Query query = query_with_blocks(collective, 64 << 10, 8);
    query.by_switches = false;
    EXPECT_NE(chosen(query), "host_staged") << "switches do not add this type";
    query = query_with_blocks(collective, 64 << 20, 2);
    query.problem.groups = {{72, 72}};
    query.problem.ranks = 144;
    EXPECT_EQ(chosen(query), "host_staged") << "racks have few channels of lanes";
  }
}

// Ranks of a host collect blocks in each other's scratch, without the limits of slots.
TEST(ChooseForGpus, StagesBlocksOfAllToAll) {
  const auto all_to_all = [](std::uint64_t bytes, Rank hosts) {
    return query_with_blocks(Collective::all_to_all, bytes, hosts);
  };
  EXPECT_EQ(chosen(all_to_all(96 << 10, 2)), "host_staged");
  EXPECT_EQ(chosen(all_to_all((96 << 10) + 1, 2)), "direct");
  for (const std::uint64_t bytes : {1U, 16U << 10, 64U << 20}) {
    for (const Rank hosts : {3U, 64U}) EXPECT_EQ(chosen(all_to_all(bytes, hosts)), "host_staged") << hosts;
    EXPECT_EQ(chosen(all_to_all(bytes, 65)), "direct");
  }
  Query query = all_to_all(64 << 10, 8);
  query.ring = {};
  EXPECT_EQ(chosen(query), "hierarchical");
  query = all_to_all(64 << 10, 8);
  query.compression = CompressionFormat::int8;
  EXPECT_EQ(chosen(query), "direct");
  query = all_to_all(64 << 20, 2);
  query.problem.groups = {{72, 72}};
  query.problem.ranks = 144;
  EXPECT_EQ(chosen(query), "host_staged") << "racks have few channels of lanes";
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
  EXPECT_EQ(channels(128 << 10, 8), 12U) << "few channels";
}

// Plans along rails also have lanes within the hosts, unless they use the ring there.
TEST(ChooseForGpus, UsesChannelsWithinHosts) {
  Query query = query_on_hosts(Collective::all_reduce, 64 << 20, 2);
  query.local_channels = 5;
  query.ring = {.channels = 12, .positions = 4, .position_bytes = 2 << 20};
  for (const auto& [name, channels] : {std::pair{"hierarchical", 5U}, {"host_staged", 12U}}) {
    query.on_rails = {partners(Collective::all_reduce, name)};
    query.algorithm = name;
    EXPECT_EQ(choose(query).value().channels, channels) << name;
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
