#include <gtest/gtest.h>

#include <random>

#include "tests/simulator/machines.h"

namespace tutti {
namespace {

using test::cluster_of;
using test::network_of;
using test::plain_costs;
using test::simulated;

// How far apart a folded run and one of all ranks may be. Where links of switches are too few for all, and in memory of
// peers, whoever is first depends on who else is simulated; elsewhere nothing does.
constexpr double kExact = 1e-6;
constexpr double kNear = 0.15;

void compare(const Cluster& cluster, const Costs& costs, const SimulatedCall& call) {
  const Network network = network_of(cluster);
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Algorithm* algorithm : catalogue(collective)) {
      if (!algorithm->supports(problem_on(network, collective))) continue;
      SimulationLimits limits;
      const test::Wanted wanted = {collective, algorithm->name()};
      const bool mapped = std::string_view(algorithm->name()).ends_with("_mapped");
      if (mapped && cluster.hosts > 1) continue;
      const double apart = mapped || cluster.oversubscription > 1 ? kNear : kExact;
      const Outcome folded = simulated(network, costs, wanted, call, limits);
      limits.fold = false;
      const Outcome every = simulated(network, costs, wanted, call, limits);
      EXPECT_NEAR(folded.time_us, every.time_us, every.time_us * apart)
          << name(collective) << " " << algorithm->name() << " on " << cluster.hosts << " hosts";
      EXPECT_NEAR(folded.data_bytes, every.data_bytes, every.data_bytes * 1e-6) << algorithm->name();
      EXPECT_LE(folded.events, every.events);
    }
  }
}

Costs real_costs() {
  Costs costs = plain_costs();
  costs.channel_gbytes_per_s.fill(60);
  costs.step_us.fill(0.1);
  return costs;
}

TEST(Fold, IsWhatAllRanksDo) {
  SimulatedCall call;
  for (const double bytes : {4e3, 4e6}) {
    call.bytes = bytes;
    compare(cluster_of(1, 8), real_costs(), call);
    compare(cluster_of(4, 4), real_costs(), call);
    compare(cluster_of(6, 2), real_costs(), call);
    compare(cluster_of(5, 1), real_costs(), call);
  }
}

TEST(Fold, HoldsWherePortsAndLeavesAreShared) {
  SimulatedCall call;
  call.bytes = 4e6;
  Cluster cluster = cluster_of(4, 4);
  cluster.rails = 2;
  compare(cluster, real_costs(), call);
  cluster = cluster_of(8, 2);
  cluster.hosts_per_leaf = 4;
  cluster.oversubscription = 2;
  compare(cluster, real_costs(), call);
}

TEST(Fold, FewRanksStandForMany) {
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

TEST(Fold, HoldsOnRandomMachines) {
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
    SimulatedCall call;
    call.bytes = one_of({1e3, 1e5, 3e6});
    call.piece_bytes = one_of({1e4, 1e5});
    call.channels = static_cast<std::uint32_t>(one_of({1, 4}));
    if (hosts * gpus > 1) compare(cluster, costs, call);
  }
}

}  // namespace
}  // namespace tutti
