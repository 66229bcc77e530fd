// Channels with different orders of ranks.
#include <gtest/gtest.h>

#include "src/tuner/map_ranks.h"
#include "tests/simulator/machines.h"
#include "tests/tuner/hybrid_cube_mesh.h"
#include "tools/simulator/simulate.h"
#include "tools/simulator/trace.h"

namespace tutti::simulator::test {
namespace {

using test::plain_costs;
using test::simulated;
using test::Wanted;
using test::whole;

const Wanted kRing = {Collective::all_reduce, "ring"};

std::vector<RankMapping> rings_of(const Topology& topology, std::uint32_t max) {
  TopologyMerger merger;
  merger.add("host", topology);
  std::vector<RankNode> rank_nodes;
  for (const NodeId gpu : topology.all(NodeKind::gpu)) rank_nodes.push_back({0, gpu});
  std::vector<RankMapping> orders;
  for (std::vector<Rank>& order : find_rank_rings(merger.take(), rank_nodes, max).orders)
    orders.push_back({.groups = {}, .order = std::move(order)});
  return orders;
}

Cluster cube() {
  Cluster cluster;
  cluster.host = tutti::test::hybrid_cube_mesh();
  return cluster;
}

Call on_channels(double bytes, std::uint32_t channels) {
  Call call = whole(bytes);
  call.channels = channels;
  return call;
}

// An order equal to the numbering has no effect.
TEST(ChannelOrders, HaveNoEffect_WhenIdentity) {
  const Network network = test::network_of(test::cluster_of(1, 4));
  Limits none, one;
  none.symmetric = false;
  one.orders = {RankMapping{.groups = {}, .order = {0, 1, 2, 3}}};
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    const Wanted ring = {collective, "ring"};
    const Outcome a = simulated(network, plain_costs(), ring, on_channels(4e6, 4), none);
    const Outcome b = simulated(network, plain_costs(), ring, on_channels(4e6, 4), one);
    EXPECT_EQ(a.time_us, b.time_us);
    EXPECT_EQ(a.data_bytes, b.data_bytes);
  }
}

// Orders beyond the number of channels are unused: two channels use two bricks, not six.
TEST(ChannelOrders, AreUnused_BeyondNumberOfChannels) {
  const Network network = test::network_of(cube());
  Limits six, two;
  six.orders = rings_of(network.cluster().host, 8);
  ASSERT_EQ(six.orders.size(), 6u);
  two.orders = {six.orders[0], six.orders[1]};
  for (const std::uint32_t channels : {1u, 2u}) {
    const Outcome some = simulated(network, plain_costs(), kRing, on_channels(240e6, channels), six);
    two.orders.resize(channels);
    const Outcome all = simulated(network, plain_costs(), kRing, on_channels(240e6, channels), two);
    EXPECT_EQ(some.time_us, all.time_us);
    EXPECT_EQ(some.data_bytes, all.data_bytes);
    two.orders = {six.orders[0], six.orders[1]};
  }
}

// A rank has channels in each order, which a trace shows separately.
TEST(ChannelOrders, HaveRowsInTrace) {
  const Network network = test::network_of(cube());
  Limits limits;
  limits.orders = rings_of(network.cluster().host, 2);
  ASSERT_EQ(limits.orders.size(), 2u);
  std::vector<TraceEvent> events;
  Call call = on_channels(1e6, 2);
  call.trace = &events;
  simulated(network, plain_costs(), kRing, call, limits);
  const std::string trace = chrome_trace(events, network);
  EXPECT_NE(trace.find("\"rank 7, order 0\""), std::string::npos);
  EXPECT_NE(trace.find("\"rank 7, order 1\""), std::string::npos);
  EXPECT_EQ(trace.find("rank 8"), std::string::npos);
}

// Six bricks of NVLink from and to each GPU, 25 GB/s each: all orders together have six times the rate of one.
TEST(ChannelOrders, UseEveryLinkOfMesh) {
  const Network network = test::network_of(cube());
  constexpr double kBytes = 240e6;
  const double min_us = 2 * 7.0 / 8 * kBytes / 150e3;
  Limits limits;
  limits.orders = rings_of(network.cluster().host, 8);
  ASSERT_EQ(limits.orders.size(), 6u);
  const Outcome all = simulated(network, plain_costs(), kRing, on_channels(kBytes, 6), limits);
  EXPECT_GE(all.time_us, min_us);
  EXPECT_LT(all.time_us, 1.15 * min_us);
  ASSERT_EQ(all.links.size(), 1u);
  EXPECT_EQ(all.links[0].kind, LinkKind::nvlink);
  limits.orders.resize(1);
  const Outcome first = simulated(network, plain_costs(), kRing, on_channels(kBytes, 6), limits);
  EXPECT_GT(first.time_us, 5 * all.time_us);
  EXPECT_NEAR(first.data_bytes, all.data_bytes, 1);
  const Outcome numbered = simulated(network, plain_costs(), kRing, on_channels(kBytes, 6));
  EXPECT_GT(numbered.time_us, first.time_us);  // Some messages use PCI.
}

}  // namespace
}  // namespace tutti::simulator::test
