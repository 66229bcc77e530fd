// Ports that a rank uses together, and messages that have them at the same time.
#include <gtest/gtest.h>

#include "tests/simulator/machines.h"
#include "tools/simulator/simulate.h"

namespace tutti::simulator::test {
namespace {

using test::network_of;
using test::plain_costs;
using test::simulated;
using test::Wanted;
using test::whole;

const Wanted kAllGather = {Collective::all_gather, "ring"};
constexpr double kBlock = 1.2e6;
constexpr double kPort = 10;  // GB/s.
constexpr auto kNetwork = static_cast<std::size_t>(LinkClass::network);

// A rank on each host, with two ports.
Network pairs_of_ports(std::uint32_t hosts) {
  Cluster cluster = test::cluster_of(hosts, 2, 100, kPort);
  cluster.ranks_per_host = 1;
  return network_of(cluster);
}

double time_of(const Network& network, const Costs& costs) {
  return simulated(network, costs, kAllGather, whole(kBlock * network.ranks())).time_us;
}

double us_on_ports(double bytes, double ports) { return bytes / (ports * kPort * 1e3); }

// Of what a block takes on both ports, and on one, as requests and turns have it.
TEST(Ports, TakeRequestsInTurns) {
  const Network network = pairs_of_ports(2);
  const double both = us_on_ports(kBlock, 2);
  const double rest = time_of(network, plain_costs()) - both;
  const auto passing = [&](double request_bytes, std::uint32_t in_turn) {
    Costs costs = plain_costs();
    costs.request_bytes = request_bytes;
    costs.requests_in_turn = in_turn;
    return time_of(network, costs) - rest;
  };
  EXPECT_NEAR(passing(kBlock, 1), 2 * both, 1e-3);
  EXPECT_NEAR(passing(10 * kBlock, 1), 2 * both, 1e-3);
  EXPECT_NEAR(passing(kBlock / 2, 1), both, 1e-3);
  EXPECT_NEAR(passing(kBlock / 3, 1), both * 4 / 3, 1e-3);
  EXPECT_NEAR(passing(kBlock / 4, 2), both, 1e-3);
  EXPECT_NEAR(passing(kBlock / 4, 4), 2 * both, 1e-3);
  EXPECT_NEAR(passing(kBlock / 12, 4), both * 4 / 3, 1e-3);  // 8 and 4 of them.
}

// Each on a port of its own, from where the one before has left off.
TEST(Ports, GoOnWithTheNextMessage) {
  const Network network = pairs_of_ports(2);
  Costs costs = plain_costs();
  const double rest = time_of(network, costs) - us_on_ports(kBlock, 2);
  costs.slices.fill(2);
  costs.shortest_slice_bytes = 1;
  costs.request_bytes = kBlock / 2;
  EXPECT_NEAR(time_of(network, costs) - rest, us_on_ports(kBlock, 2), 1e-3);
  costs.requests_in_turn = 2;  // Now both on the first.
  EXPECT_NEAR(time_of(network, costs) - rest, us_on_ports(kBlock, 1), 1e-3);
}

// Two slices of a block, which are passed on once: the first cannot be before it is there.
TEST(Messages, ShareLinksWithTheOneBefore) {
  const Network network = pairs_of_ports(3);
  constexpr double kHop = 1000;
  Costs costs = plain_costs(5, kHop);
  costs.slices.fill(2);
  costs.shortest_slice_bytes = 1;
  const double slice = us_on_ports(kBlock / 2, 2);
  const double in_order = time_of(network, costs);
  EXPECT_NEAR(in_order, 5 + 3 * slice + 2 * kHop, 5);
  costs.interleaved_bytes = kBlock;
  EXPECT_NEAR(time_of(network, costs) - in_order, slice, 1e-3);
  costs.lead_us = slice / 2;
  EXPECT_NEAR(time_of(network, costs) - in_order, slice / 2, 1e-3);
  costs.lead_us = 2 * slice;
  EXPECT_NEAR(time_of(network, costs), in_order, 1e-3);
  costs.lead_us = 0;
  costs.interleaved_bytes = kBlock * 3 / 4;  // The first half of the second.
  EXPECT_NEAR(time_of(network, costs) - in_order, slice / 2, 1e-3);
  costs.interleaved_bytes = kBlock / 2;
  EXPECT_NEAR(time_of(network, costs), in_order, 1e-3);
}

TEST(Messages, AreNotCopiedWhereTheyGoDirectly) {
  const Network network = pairs_of_ports(3);
  const auto times = [&](Collective collective, double direct) {
    Costs costs = plain_costs();
    costs.channel_gbytes_per_s.fill(5);
    costs.direct[kNetwork] = direct;
    return simulated(network, costs, {collective, "ring"}, whole(3 * kBlock)).time_us;
  };
  EXPECT_NEAR(times(Collective::all_gather, 1), time_of(network, plain_costs()), 1e-3);
  EXPECT_GT(times(Collective::all_gather, 0), times(Collective::all_gather, 1) + kBlock / 5e3);
  // What is reduced is: a ring of three reduces two blocks of each, one after the other.
  const double fast =
      simulated(network, plain_costs(), {Collective::reduce_scatter, "ring"}, whole(3 * kBlock)).time_us;
  EXPECT_GT(times(Collective::reduce_scatter, 1), fast + kBlock / 5e3);
}

}  // namespace
}  // namespace tutti::simulator::test
