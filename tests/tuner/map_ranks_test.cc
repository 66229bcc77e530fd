// Rings through vendor systems, whole and in parts.
#include "src/tuner/map_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/base/service_thread.h"
#include "src/topology/paths.h"
#include "src/topology/presets.h"
#include "src/tuner/rings.h"
#include "tests/tuner/hybrid_cube_mesh.h"

namespace tutti::test {
namespace {

std::vector<NodeId> gpus_of(const Topology& topology, const std::vector<std::uint32_t>& indices) {
  std::vector<NodeId> found;
  for (const std::uint32_t index : indices)
    for (const NodeId id : topology.all(NodeKind::gpu))
      if (topology.nodes[id].index == index) found.push_back(id);
  return found;
}

double sum_of(const NodeRings& node_rings) {
  return node_rings.gbytes_per_s * static_cast<double>(node_rings.each.size());
}

TEST(MapRanks, UsesEveryNvLink_OfSwitchedSystem) {
  const std::pair<const char*, double> stated[] = {{"dgx-a100", 300}, {"dgx-h100", 450}, {"dgx-b200", 900}};
  for (const auto& [name, gbytes_per_s] : stated) {
    const Topology topology = preset(name).value();
    for (const std::vector<std::uint32_t>& gpus :
         {std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}, {0, 3, 6}, {1, 2, 4, 5, 7}, {6, 1}}) {
      const NodeRings found = find_node_rings(topology, gpus_of(topology, gpus), {});
      EXPECT_NEAR(sum_of(found), gbytes_per_s, 1e-6) << name << " of " << gpus.size();
      EXPECT_EQ(found.each.size(), 1u);  // No more rings than necessary.
    }
  }
}

// Six bricks of each GPU, in each direction; NCCL finds as many.
TEST(MapRanks, UsesEveryNvLink_OfMesh) {
  const Topology topology = hybrid_cube_mesh();
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  EXPECT_NEAR(sum_of(found), 150, 1e-6);
  for (const NodeRing& node_ring : found.each)
    for (std::size_t i = 0; i < node_ring.nodes.size(); ++i)
      EXPECT_EQ(find_path(topology, node_ring.nodes[i], node_ring.nodes[(i + 1) % 8]).kind, PathKind::nvlink);
}

// Rings have no advantage if NVLinks connect all pairs, or none.
TEST(MapRanks, KnowsWhereOnlyRingsFollowNvLinks) {
  const Topology cube = hybrid_cube_mesh(), switched = preset("dgx-h100").value();
  EXPECT_TRUE(find_node_rings(cube, cube.all(NodeKind::gpu), {}).only_rings);
  EXPECT_FALSE(find_node_rings(cube, gpus_of(cube, {0, 1, 2, 3}), {}).only_rings);
  EXPECT_TRUE(find_node_rings(cube, gpus_of(cube, {0, 1, 4, 5}), {}).only_rings);
  EXPECT_FALSE(find_node_rings(cube, gpus_of(cube, {1, 0, 6}), {}).only_rings);  // GPU 6 is not joined to either.
  EXPECT_FALSE(find_node_rings(switched, switched.all(NodeKind::gpu), {}).only_rings);
  Topology bare = cube;
  std::erase_if(bare.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  EXPECT_FALSE(find_node_rings(bare, bare.all(NodeKind::gpu), {}).only_rings);
}

TEST(MapRanks, AvoidsMissingLink) {
  Topology topology = hybrid_cube_mesh();
  std::erase_if(topology.links, [&](const Link& link) {
    return link.kind == LinkKind::nvlink && topology.nodes[link.a].name == "gpu0" &&
           topology.nodes[link.b].name == "gpu4";
  });
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  EXPECT_NEAR(sum_of(found), 100, 1e-6);  // The rest of gpu0's bricks.
}

// If links to a switch are missing, rings use the other switches.
TEST(MapRanks, UsesSwitchesThatBothEndsReach) {
  Topology topology = preset("dgx-h100").value();
  const NodeId gpu = gpus_of(topology, {3}).front();
  std::erase_if(topology.links, [&](const Link& link) {
    return link.kind == LinkKind::nvlink && link.a == gpu && topology.nodes[link.b].name == "nvswitch0";
  });
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  EXPECT_NEAR(sum_of(found), 325, 1e-6);  // 13 of 18 links.
}

// If only sockets connect GPUs, a ring crosses between the sockets once in each direction.
TEST(MapRanks, CrossesSocketsMinimally) {
  Topology topology = hybrid_cube_mesh();
  std::erase_if(topology.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  const std::vector<NodeId> mixed = gpus_of(topology, {0, 4, 1, 5, 2});
  const NodeRings found = find_node_rings(topology, mixed, {});
  EXPECT_NEAR(sum_of(found), 15.8, 1e-6);
  for (const NodeRing& node_ring : found.each) {
    int crossings = 0;
    for (std::size_t i = 0; i < node_ring.nodes.size(); ++i)
      crossings += find_path(topology, node_ring.nodes[i], node_ring.nodes[(i + 1) % node_ring.nodes.size()]).kind ==
                   PathKind::sys;
    EXPECT_EQ(crossings, 2);
  }
}

TEST(MapRanks, LeavesByEachPort_FromNearestGpu) {
  const Topology topology = preset("dgx-a100").value();
  const std::vector<NodeId> ports = usable_ports(topology);
  ASSERT_EQ(ports.size(), 8u);
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), ports);
  EXPECT_NEAR(sum_of(found), 200, 1e-6);
  std::set<NodeId> used;
  for (const NodeRing& node_ring : found.each) {
    used.insert(node_ring.port);
    EXPECT_EQ(find_path(topology, node_ring.port, node_ring.nodes.front()).kind, PathKind::pix);
    EXPECT_EQ(find_path(topology, node_ring.nodes.back(), node_ring.port).kind, PathKind::pix);
  }
  EXPECT_EQ(used.size(), 8u);
}

// Each rank sends through its own port: three GPUs have three ports, and the third GPU is on the other socket.
TEST(MapRanks, UsesPortsOfSelectedGpus) {
  const Topology topology = preset("dgx-h100").value();
  const std::vector<NodeId> ports = usable_ports(topology), gpus = gpus_of(topology, {0, 2, 5});
  const NodeRings found = find_node_rings(topology, gpus, ports, 8);
  EXPECT_EQ(found.each.size(), 3u);
  EXPECT_NEAR(sum_of(found), 150, 1e-6);
  std::set<NodeId> leave, enter;
  for (const NodeRing& node_ring : found.each) {
    EXPECT_EQ(node_ring.port, nearest_port(topology, node_ring.nodes.back(), ports));
    leave.insert(node_ring.nodes.back());
    enter.insert(node_ring.nodes.front());
  }
  EXPECT_EQ(leave.size(), 3u);
  EXPECT_EQ(enter.size(), 3u);
}

TEST(MapRanks, ExcludesInactivePorts) {
  Topology topology = preset("dgx-h100").value();
  const NodeId down = topology.all(NodeKind::nic)[2];
  topology.nodes[down].down = true;
  const std::vector<NodeId> ports = usable_ports(topology);
  EXPECT_EQ(ports.size(), 7u);
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), ports);
  EXPECT_NEAR(sum_of(found), 350, 1e-6);
  EXPECT_EQ(nearest_port(topology, gpus_of(topology, {5}).front(), ports), topology.all(NodeKind::nic)[5]);
  EXPECT_NE(nearest_port(topology, gpus_of(topology, {2}).front(), ports), down);
}

TEST(MapRanks, NamesSlowestLink) {
  Topology topology = hybrid_cube_mesh();
  const std::vector<NodeId> three = gpus_of(topology, {1, 0, 6});  // GPU 6 has no NVLink to either.
  const NodeRings found = find_node_rings(topology, three, {});
  ASSERT_FALSE(found.each.empty());
  for (const NodeRing& node_ring : found.each) {
    const NodeId from = node_ring.nodes[node_ring.slowest], to = node_ring.nodes[(node_ring.slowest + 1) % 3];
    EXPECT_EQ(find_path(topology, from, to).kind, PathKind::sys);
  }
}

TEST(MapRanks, FindsNoRing_WithoutLinks) {
  Topology topology = hybrid_cube_mesh();
  std::erase_if(topology.links,
                [](const Link& link) { return link.kind == LinkKind::nvlink || link.kind == LinkKind::smp; });
  EXPECT_TRUE(find_node_rings(topology, topology.all(NodeKind::gpu), {}).each.empty());
}

TEST(MapRanks, IsDeterministic) {
  const Topology topology = hybrid_cube_mesh();
  const NodeRings one = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  const NodeRings other = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  EXPECT_EQ(one.each, other.each);
  EXPECT_EQ(one.visits, other.visits);
  EXPECT_LE(one.visits, 2 * kMaxVisits);
}

// Runs the whole search for a rack of 72 GPUs with 72 ports.
TEST(MapRanks, NeedsLittleStack) {
  const Topology rack = preset("gb200-nvl72").value();
  NodeRings found;
  {
    const auto thread =
        LibraryThread::start([&] { found = find_node_rings(rack, rack.all(NodeKind::gpu), usable_ports(rack)); });
    ASSERT_TRUE(thread.ok());
  }
  EXPECT_EQ(found.each.size(), 18u);
}

// Returns a topology that a peer might send: GPUs at many NVSwitches, for which a complete search would take minutes.
Topology switched(std::uint32_t gpus, std::uint32_t switches) {
  Topology topology;
  topology.hosts = {"reported"};
  for (std::uint32_t i = 0; i < gpus; ++i) topology.add(node(NodeKind::gpu, "gpu" + std::to_string(i), i));
  for (std::uint32_t i = 0; i < switches; ++i) {
    const NodeId middle = topology.add(node(NodeKind::nvswitch, "nvswitch" + std::to_string(i)));
    for (NodeId gpu = 0; gpu < gpus; ++gpu) topology.connect({gpu, middle, LinkKind::nvlink, 1.0 + i, 1, 1});
  }
  return topology;
}

TEST(MapRanks, LimitsSteps) {
  const Topology topology = switched(kMaxVertices, kMaxLinksSent / kMaxVertices);
  ASSERT_TRUE(fits_broadcast(topology));
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  EXPECT_TRUE(found.each.empty());
  const NodeId last = kMaxVertices - 1;
  EXPECT_LE(found.steps, kMaxSteps + find_path(topology, 0, last).steps);
}

TEST(MapRanks, RejectsTooManyGpus) {
  const Topology topology = switched(kMaxVertices + 1, 1);
  const NodeRings found = find_node_rings(topology, topology.all(NodeKind::gpu), {});
  EXPECT_TRUE(found.each.empty());
  EXPECT_EQ(found.steps, 0u);
}

class MapRanksOfHosts : public testing::Test {
 protected:
  // Places ranks on `hosts` systems, with these GPUs in each.
  void place(std::uint32_t hosts, const std::vector<std::uint32_t>& gpus) {
    const Topology topology = preset("dgx-h100").value();
    TopologyMerger merger;
    for (std::uint32_t host = 0; host < hosts; ++host) {
      merger.add("host" + std::to_string(host), topology);
      for (const NodeId gpu : gpus_of(topology, gpus)) rank_nodes.push_back({host, gpu});
    }
    merged = merger.take();
  }
  MergedTopology merged;
  std::vector<RankNode> rank_nodes;
};

TEST_F(MapRanksOfHosts, OrdersContainEachRankOnce_WithContiguousHosts) {
  place(3, {4, 0, 2, 7});
  const RankRings rings = find_rank_rings(merged, rank_nodes);
  ASSERT_FALSE(rings.orders.empty());
  for (const std::vector<Rank>& order : rings.orders) {
    ASSERT_EQ(order.size(), 12u);
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i] / 4, i / 4);
    EXPECT_EQ(std::set<Rank>(order.begin(), order.end()).size(), 12u);
  }
}

TEST_F(MapRanksOfHosts, RanksOfOneDeviceAreAdjacent) {
  place(1, {0, 1, 0, 1, 2});
  const RankRings rings = find_rank_rings(merged, rank_nodes);
  ASSERT_FALSE(rings.orders.empty());
  const std::vector<Rank>& order = rings.orders.front();
  const auto at = [&](Rank rank) { return std::find(order.begin(), order.end(), rank) - order.begin(); };
  EXPECT_EQ(at(2), at(0) + 1);
  EXPECT_EQ(at(3), at(1) + 1);
}

TEST_F(MapRanksOfHosts, SearchesIdenticalHostsOnce) {
  place(1024, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(merged.kinds.size(), 1u);
  const RankRings rings = find_rank_rings(merged, rank_nodes, 8);
  EXPECT_EQ(rings.orders.size(), 8u);
  EXPECT_NEAR(rings.gbytes_per_s, 50, 1e-6);
}

// A communicator has four GPUs of a host. Its rings use their four ports, each twice: once per direction.
TEST_F(MapRanksOfHosts, UsesPortsOfItsGpus) {
  place(2, {4, 0, 2, 7});
  const RankRings rings = find_rank_rings(merged, rank_nodes, 8);
  EXPECT_EQ(rings.orders.size(), 8u);
  EXPECT_NEAR(rings.gbytes_per_s, 25, 1e-6);
  std::map<Rank, int> ends;
  for (const std::vector<Rank>& order : rings.orders)
    for (const std::size_t end : {0, 3, 4, 7}) ++ends[order[end]];
  for (Rank rank = 0; rank < 8; ++rank) EXPECT_EQ(ends[rank], 4) << "rank " << rank;
  const std::vector<Rank>& first = rings.orders[0];
  EXPECT_EQ(std::vector<Rank>(first.rbegin() + 4, first.rend()),
            std::vector<Rank>(rings.orders[4].begin(), rings.orders[4].begin() + 4));
}

TEST_F(MapRanksOfHosts, FindsNothing_ForRanksWithoutPlace) {
  place(1, {0, 1});
  rank_nodes.push_back({0, kNoNode});
  EXPECT_TRUE(find_rank_rings(merged, rank_nodes).orders.empty());
  rank_nodes.back() = {7, 0};
  EXPECT_TRUE(find_rank_rings(merged, rank_nodes).orders.empty());
}

}  // namespace
}  // namespace tutti::test
