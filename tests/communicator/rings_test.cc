#include "src/communicator/planning/rings.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"
#include "src/plan/verify.h"
#include "src/topology/paths.h"
#include "src/topology/presets.h"
#include "src/tuner/map_ranks.h"
#include "tests/communicator/crossed_gpus.h"
#include "tests/tuner/hybrid_cube_mesh.h"

namespace tutti::test {
namespace {

using Order = std::vector<Rank>;

constexpr std::uint32_t kMax = 8;

// Returns whether both orders are the same ring. Rings have no first rank, and both directions are equal.
bool is_ring(Order order, const Order& wanted) {
  for (const bool reversed : {false, true}) {
    if (reversed) std::reverse(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order == wanted) return true;
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
  }
  return false;
}

TEST(RingMapping, FollowsNvLinks) {
  for (const RankMapping& rank_mapping : ring_orders(on_crossed_gpus({0, 0, 0, 0}), kMax).each) {
    EXPECT_TRUE(is_ring(rank_mapping.order, {0, 2, 1, 3})) << testing::PrintToString(rank_mapping.order);
    EXPECT_TRUE(rank_mapping.groups.empty());
  }
}

TEST(RingMapping, KeepsHostsContiguous) {
  const RankMapping rank_mapping = ring_orders(on_crossed_gpus({0, 1, 0, 1, 0, 1, 0, 1}), kMax).each.front();
  ASSERT_EQ(rank_mapping.order.size(), 8u);
  EXPECT_EQ(rank_mapping.groups, (std::vector<Order>{{4, 4}}));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(rank_mapping.order[i] % 2, i / 4);
}

// The sub-communicator has four of five ranks in another order. Its ring must follow the NVLinks of their GPUs.
TEST(RingMapping, FollowsGpus_InSubCommunicator) {
  const Hosts part = on_crossed_gpus({0, 0, 0, 0, 1}).of({3, 0, 1, 2});
  EXPECT_EQ(gpu_of(part.location(0)), bus_of(3));
  const RankMapping rank_mapping = ring_orders(part, kMax).each.front();
  EXPECT_TRUE(is_ring(rank_mapping.order, {0, 1, 3, 2})) << testing::PrintToString(rank_mapping.order);
}

// [{from, to}]: bandwidth in bricks of NVLink from GPU to GPU, in each direction.
using Bricks = std::map<std::pair<Rank, Rank>, double>;

Bricks bricks_of(const Topology& topology) {
  Bricks bricks;
  for (const Link& link : topology.links) {
    if (link.kind != LinkKind::nvlink) continue;
    const Rank a = topology.nodes[link.a].index, b = topology.nodes[link.b].index;
    bricks[{a, b}] = bricks[{b, a}] = link.width;
  }
  return bricks;
}

// Returns the number of messages between each pair of ranks, for one chunk on each channel.
Bricks spoken(const std::vector<RankMapping>& rank_mappings, const Problem& problem, const char* algorithm) {
  Bricks messages;
  for (const RankMapping& rank_mapping : rank_mappings) {
    for (const Plan& plan : emit_plans(*find(problem.collective, algorithm), logical(rank_mapping, problem))) {
      const Plan mine = mapped_plan(rank_mapping, problem, plan);
      for (std::size_t i = 0; i < mine.steps.size(); ++i)
        for (const Operand& target : mine.steps[i].targets)
          if (target.space == Space::lane) ++messages[{mine.steps.self(), target.peer}];
    }
  }
  return messages;
}

// Each ring uses one brick of each of its links. Together, rings must use all bricks of the cube in both directions,
// and no other link.
TEST(RingMapping, UsesEveryNvLinkOfMesh_WithChannels) {
  const Topology cube = hybrid_cube_mesh();
  const std::vector<RankMapping> rank_mappings = ring_orders(on_gpus_of(cube, std::vector<Rank>(8, 0)), kMax).each;
  ASSERT_EQ(rank_mappings.size(), 6u);
  const Problem problem = {.collective = Collective::all_gather, .ranks = 8, .groups = {}};
  Bricks messages = spoken(rank_mappings, problem, "ring");
  for (auto& [pair, count] : messages) count /= problem.ranks - 1;
  EXPECT_EQ(messages, bricks_of(cube));
}

TEST(RingMapping, AvoidsMissingLink) {
  Topology cube = hybrid_cube_mesh();
  std::erase_if(cube.links, [&](const Link& link) {
    return link.kind == LinkKind::nvlink && cube.nodes[link.a].index == 0 && cube.nodes[link.b].index == 4;
  });
  const std::vector<RankMapping> rank_mappings = ring_orders(on_gpus_of(cube, std::vector<Rank>(8, 0)), kMax).each;
  EXPECT_EQ(rank_mappings.size(), 4u);
  const Bricks there = bricks_of(cube);
  const Problem problem = {.collective = Collective::reduce_scatter, .ranks = 8, .groups = {}};
  for (const auto& [pair, count] : spoken(rank_mappings, problem, "ring")) {
    ASSERT_TRUE(there.contains(pair)) << pair.first << " to " << pair.second;
    EXPECT_LE(count / (problem.ranks - 1), there.at(pair));
  }
}

TEST(RingMapping, IsLimitedByChannels) {
  const Hosts hosts = on_gpus_of(hybrid_cube_mesh(), std::vector<Rank>(8, 0));
  for (std::uint32_t max = 1; max <= 6; ++max) EXPECT_EQ(ring_orders(hosts, max).each.size(), max);
}

// Verifies the plans of each channel with the ranks, blocks and roots of the call.
TEST(RingMapping, KeepsPlansCorrect) {
  const std::pair<Collective, const char*> algorithms[] = {{Collective::all_reduce, "ring"},
                                                           {Collective::all_reduce, "hierarchical_ring"},
                                                           {Collective::all_gather, "ring"},
                                                           {Collective::reduce_scatter, "ring"},
                                                           {Collective::broadcast, "chain"},
                                                           {Collective::reduce, "chain"},
                                                           {Collective::all_reduce, "hierarchical_tree"},
                                                           {Collective::reduce, "hierarchical_tree"}};
  for (const std::vector<Rank>& host_of : {std::vector<Rank>(8, 0), {0, 1, 0, 1, 1, 0, 0, 1, 0}}) {
    const std::vector<RankMapping> rank_mappings = ring_orders(on_gpus_of(hybrid_cube_mesh(), host_of), kMax).each;
    EXPECT_GT(rank_mappings.size(), 1u);
    for (const auto& [collective, name] : algorithms) {
      Problem problem = {.collective = collective, .ranks = static_cast<Rank>(host_of.size()), .root = 0, .groups = {}};
      if (std::string_view(name).starts_with("hierarchical")) problem.groups = rank_mappings.front().groups;
      if (has_root(collective)) problem.root = 3;
      for (const RankMapping& rank_mapping : rank_mappings) {
        for (const bool in_place : {false, true}) {
          problem.in_place = in_place;
          if (!find(collective, name)->supports(problem)) continue;
          std::vector<Plan> plans(problem.ranks);
          for (Plan& plan : emit_plans(*find(collective, name), logical(rank_mapping, problem))) {
            fuse(plan);
            const Plan mine = mapped_plan(rank_mapping, problem, plan);
            plans[mine.steps.self()] = mine;
          }
          EXPECT_EQ(verify(plans).status().message(), "")
              << name << " " << describe(problem) << " " << testing::PrintToString(rank_mapping.order);
        }
      }
    }
  }
}

// Returns two hosts. On the second one, ranks use the GPUs in reverse order.
Hosts on_reversed_gpus(const Topology& topology) {
  constexpr Rank kGpus = 8;
  Hosts hosts(std::vector<Rank>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  std::vector<Location> locations(hosts.ranks());
  TopologyMerger merger;
  for (const char* name : {"one", "other"}) merger.add(name, topology);
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const Rank index = rank < kGpus ? rank : 2 * kGpus - 1 - rank;
    for (const NodeId gpu : topology.all(NodeKind::gpu))
      if (topology.nodes[gpu].index == index) set_gpu(locations[rank], topology.nodes[gpu].bus_id);
  }
  hosts.place(std::move(locations));
  hosts.set_topology(std::make_shared<const MergedTopology>(merger.take()));
  return hosts;
}

TEST(RailMapping, FollowsNearestPorts) {
  const RankMapping rank_mapping = rail_rank_mapping(on_reversed_gpus(preset("dgx-h100").value()));
  EXPECT_EQ(rank_mapping.groups, (std::vector<Order>{{8, 8}}));
  EXPECT_EQ(rank_mapping.order, (Order{0, 1, 2, 3, 4, 5, 6, 7, 15, 14, 13, 12, 11, 10, 9, 8}));
}

// Returns the peers of a rank on other hosts, if each host has `size` ranks.
std::vector<Rank> on_other_hosts(const Plan& plan, Rank size) {
  std::vector<Rank> peers;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    for (const Operand& target : plan.steps[i].targets)
      if (target.space == Space::lane && target.peer / size != plan.steps.self() / size) peers.push_back(target.peer);
  return peers;
}

// Returns the plan of each rank for the hierarchical algorithm with this rank mapping.
std::vector<Plan> on_rails(const RankMapping& rank_mapping, const Problem& problem) {
  std::vector<Plan> plans(problem.ranks);
  for (Plan& plan : emit_plans(*find(problem.collective, "hierarchical"), logical(rank_mapping, problem))) {
    fuse(plan);
    const Plan mine = mapped_plan(rank_mapping, problem, plan);
    plans[mine.steps.self()] = mine;
  }
  return plans;
}

// In collectives with a block per rank, plans must move the correct blocks with a rank mapping. Traffic between hosts
// must stay on a rail.
TEST(RailMapping, IsKept_ForBlocksOfRanks) {
  const RankMapping rails = rail_rank_mapping(on_reversed_gpus(preset("dgx-h100").value()));
  const RankMapping dealt = rank_mapping_of(std::vector<Rank>{0, 1, 0, 1, 1, 0, 1});
  ASSERT_FALSE(dealt.order.empty());
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    ASSERT_TRUE(moves_blocks_with_ranks("hierarchical", collective));
    for (const bool in_place : {false, true}) {
      for (const RankMapping* rank_mapping : {&rails, &dealt}) {
        const Problem problem = {.collective = collective,
                                 .ranks = static_cast<Rank>(rank_mapping->order.size()),
                                 .in_place = in_place,
                                 .groups = rank_mapping->groups};
        const std::vector<Plan> plans = on_rails(*rank_mapping, problem);
        EXPECT_EQ(verify(plans).status().message(), "") << describe(problem);
        if (rank_mapping == &dealt) continue;
        for (const Plan& plan : plans)
          for (const Rank peer : on_other_hosts(plan, 8)) EXPECT_EQ(peer, 15 - plan.steps.self());
      }
    }
  }
}

// Returns hosts with this many GPUs each, and consecutive ranks on each host.
Hosts on_systems(const Topology& topology, Rank hosts, Rank gpus) {
  std::vector<Rank> host_of;
  std::vector<Location> locations(std::size_t{hosts} * gpus);
  TopologyMerger merger;
  for (Rank rank = 0; rank < locations.size(); ++rank) {
    host_of.push_back(rank / gpus);
    if (rank % gpus == 0) merger.add("host" + std::to_string(rank / gpus), topology);
    for (const NodeId gpu : topology.all(NodeKind::gpu))
      if (topology.nodes[gpu].index == rank % gpus) set_gpu(locations[rank], topology.nodes[gpu].bus_id);
  }
  Hosts made(host_of);
  made.place(std::move(locations));
  made.set_topology(std::make_shared<const MergedTopology>(merger.take()));
  return made;
}

// On each channel, the two leaders of a host must be the ranks whose GPUs are nearest to the channel's port. Every port
// must have a channel.
TEST(TreeMapping, ChoosesLeadersNearPortOfChannel) {
  const Topology topology = preset("dgx-a100").value();
  const Hosts hosts = on_systems(topology, 3, 8);
  const std::vector<NodeId> ports = usable_ports(topology);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce}) {
    std::set<NodeId> used;
    const RingOrders orders = ring_orders(hosts, kMax);
    EXPECT_EQ(orders.each.size(), 8u);
    for (const RankMapping& rank_mapping : orders.each) {
      const Problem problem = {.collective = collective, .ranks = 24, .groups = rank_mapping.groups};
      std::set<NodeId> near = {ports.begin(), ports.end()};  // Ports near all leaders of this channel.
      for (const Plan& plan : emit_plans(*find(collective, "hierarchical_tree"), logical(rank_mapping, problem))) {
        const Plan mine = mapped_plan(rank_mapping, problem, plan);
        if (on_other_hosts(mine, 8).empty()) continue;
        for (const NodeId gpu : topology.all(NodeKind::gpu)) {
          if (topology.nodes[gpu].index != mine.steps.self() % 8) continue;
          std::erase_if(near, [&](NodeId port) { return find_path(topology, gpu, port).kind != PathKind::pix; });
        }
      }
      EXPECT_FALSE(near.empty()) << testing::PrintToString(rank_mapping.order);
      used.insert(near.begin(), near.end());
    }
    EXPECT_EQ(used.size(), 8u);
  }
}

TEST(RailMapping, IsIdentity_WhenNoPortIsKnown) {
  const RankMapping rank_mapping = rail_rank_mapping(on_reversed_gpus(hybrid_cube_mesh()));
  EXPECT_EQ(rank_mapping.groups, (std::vector<Order>{{8, 8}}));
  EXPECT_TRUE(rank_mapping.order.empty());
  EXPECT_TRUE(rail_rank_mapping(Hosts::one_host(4)).groups.empty());
}

TEST(RingMapping, IsIdentity_WhenTopologyIsUnknown) {
  EXPECT_TRUE(ring_orders(Hosts::one_host(4), kMax).each.front().order.empty());
  Hosts hosts = on_crossed_gpus({0, 0, 0, 0});
  std::vector<Location> locations = hosts.locations();
  set_gpu(locations[2], "0000:ff:00.0");  // A GPU that is not in the topology.
  hosts.place(locations);
  ASSERT_EQ(ring_orders(hosts, kMax).each.size(), 1u);
  EXPECT_TRUE(ring_orders(hosts, kMax).each.front().order.empty());
}

}  // namespace
}  // namespace tutti::test
