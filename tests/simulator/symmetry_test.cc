#include <gtest/gtest.h>

#include <random>

#include "tests/simulator/machines.h"

namespace tutti::simulator::test {
namespace {

using namespace test;

// Maximum relative difference between a symmetric run and a run of all ranks. With oversubscribed switches, and in
// peers' memory, the order of ranks depends on which ranks are simulated. In other cases only events at equal times may
// differ in the last digit.
constexpr double kExact = 1e-6;
constexpr double kClose = 0.03;
constexpr double kNear = 0.5;

void compare(const Cluster& cluster, const Costs& costs, const Call& call, double close = kExact) {
  const Network network = network_of(cluster);
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Algorithm* algorithm : catalogue(collective)) {
      if (!algorithm->supports(problem_on(network, collective))) continue;
      Limits limits;
      const Wanted wanted = {collective, algorithm->name()};
      const bool mapped = accesses_peers(algorithm->name());
      if (mapped && cluster.hosts > 1) continue;
      const double apart = mapped || cluster.oversubscription > 1 ? kNear : close;
      const Outcome symmetric = simulated(network, costs, wanted, call, limits);
      limits.symmetric = false;
      const Outcome every = simulated(network, costs, wanted, call, limits);
      EXPECT_NEAR(symmetric.time_us, every.time_us, every.time_us * apart)
          << name(collective) << " " << algorithm->name() << " on " << cluster.hosts << " hosts";
      EXPECT_NEAR(symmetric.data_bytes, every.data_bytes, every.data_bytes * 1e-6) << algorithm->name();
      EXPECT_LE(symmetric.events, every.events);
    }
  }
}

Costs real_costs() {
  Costs costs = plain_costs();
  costs.channel_gbytes_per_s.fill(60);
  costs.step_us.fill(0.1);
  return costs;
}

TEST(SymmetricSimulation, MatchesSimulationOfAllRanks) {
  Call call;
  for (const double bytes : {4e3, 4e6}) {
    call.bytes = bytes;
    compare(cluster_of(1, 8), real_costs(), call);
    compare(cluster_of(4, 4), real_costs(), call);
    compare(cluster_of(6, 2), real_costs(), call);
    compare(cluster_of(5, 1), real_costs(), call);
  }
}

TEST(SymmetricSimulation, MatchesSimulationOfAllRanks_WithSharedPortsAndLeaves) {
  Call call;
  call.bytes = 4e6;
  Cluster cluster = cluster_of(4, 4);
  cluster.rails = 2;
  compare(cluster, real_costs(), call);
  cluster = cluster_of(8, 2);
  cluster.hosts_per_leaf = 4;
  cluster.oversubscription = 2;
  compare(cluster, real_costs(), call);
}

TEST(SymmetricSimulation, MatchesSimulationOfAllRanks_WithNvlinkDomains) {
  Call call;
  for (const double bytes : {4e3, 4e6}) {
    call.bytes = bytes;
    for (const std::uint32_t domain : {2, 4}) {
      Cluster cluster = cluster_of(4, 2);
      cluster.hosts_per_nvlink_domain = domain;
      compare(cluster, real_costs(), call);
    }
  }
}

// Pairs of GPUs share a PCI switch and its port. Rotated by one place, a host looks the same, but the pairs differ.
TEST(SymmetricSimulation, DoesNotMergeRanks_ThatShareAPort) {
  Cluster cluster = cluster_of(2, 4);
  Topology& host = cluster.host;
  host.nodes.clear();
  host.links.clear();
  const NodeId numa = add_node(host, NodeKind::numa, "numa0");
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i);
    const NodeId above = add_node(host, NodeKind::pci_switch, "pci" + number);
    const NodeId nic = add_node(host, NodeKind::nic, "nic" + number, 1);
    host.nodes[nic].gbytes_per_s = 5;
    host.connect({.a = numa, .b = above, .kind = LinkKind::pci, .gbytes_per_s = 50});
    host.connect({.a = above, .b = nic, .kind = LinkKind::pci, .gbytes_per_s = 50});
    for (std::uint32_t k = 0; k < 2; ++k) {
      const NodeId gpu = add_node(host, NodeKind::gpu, "gpu" + std::to_string(2 * i + k), 2 * i + k);
      host.connect({.a = above, .b = gpu, .kind = LinkKind::pci, .gbytes_per_s = 50});
    }
  }
  const NodeId middle = add_node(host, NodeKind::nvswitch, "nvswitch0");
  for (NodeId id = 0; id < host.nodes.size(); ++id)
    if (host.nodes[id].kind == NodeKind::gpu)
      host.connect({.a = id, .b = middle, .kind = LinkKind::nvlink, .gbytes_per_s = 100});
  Call call;
  call.bytes = 4e6;
  compare(cluster, real_costs(), call);
}

TEST(SymmetricSimulation, HasFewClassesOfRanks) {
  const auto classes = [](const Cluster& cluster, std::string_view algorithm) {
    const Network network = network_of(cluster);
    auto simulation = Simulation::make(network, plain_costs(), *find(Collective::all_reduce, algorithm),
                                       problem_on(network, Collective::all_reduce));
    return simulation.value().program().classes();
  };
  EXPECT_EQ(classes(cluster_of(1, 8), "ring"), 1U);
  EXPECT_EQ(classes(cluster_of(16, 8), "ring"), 8U);
  EXPECT_EQ(classes(cluster_of(16, 8), "hierarchical"), 1U);
  EXPECT_EQ(classes(cluster_of(6, 8), "hierarchical"), 6U);
  EXPECT_EQ(classes(cluster_of(1, 8), "double_binary_tree"), 8U);
  Cluster slow = cluster_of(1, 8);
  slow.faults = {{"host0:gpu3", 0.5}};
  EXPECT_EQ(classes(slow, "ring"), 8U);
}

TEST(SymmetricSimulation, MatchesSimulationOfAllRanks_OnRandomMachines) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
  for (int round = 0; round < 6; ++round) {
    const auto hosts = static_cast<std::uint32_t>(one_of({1, 2, 3, 4, 8}));
    const auto gpus = static_cast<std::uint32_t>(one_of({1, 2, 3, 4}));
    Cluster cluster = cluster_of(hosts, gpus, one_of({20, 100, 450}), one_of({5, 25, 50}));
    cluster.hosts_per_leaf = static_cast<std::uint32_t>(one_of({2, 32}));
    Costs costs = plain_costs(one_of({1, 5}), one_of({0.5, 3}));
    costs.channel_gbytes_per_s.fill(one_of({5, 50}));
    costs.step_us.fill(one_of({0.05, 0.3}));
    Call call;
    call.bytes = one_of({1e3, 1e5, 3e6});
    call.chunk_bytes = one_of({1e4, 1e5});
    call.channels = static_cast<std::uint32_t>(one_of({1, 4}));
    if (hosts * gpus > 1) compare(cluster, costs, call, kClose);
  }
}

}  // namespace
}  // namespace tutti::simulator::test
