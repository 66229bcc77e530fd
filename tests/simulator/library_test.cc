// Launches, slices and slots of the measured libraries.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulator/machines.h"
#include "tools/simulator/simulate.h"

namespace tutti::simulator::test {
namespace {

using namespace test;

const Wanted kRing = {Collective::all_gather, "ring"};

TEST(LibraryModel, LimitsCallsInSeries_ByLaunchTime) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs();
  const double device = simulated(network, costs, kRing, whole(4e3)).time_us;
  costs.launch_us = device / 2;
  costs.launch_many_us = device;
  costs.launch_graph_us = 1;
  costs.launch_device_us = 1;
  Call call = whole(4e3);
  EXPECT_EQ(simulated(network, costs, kRing, call).time_us, device);
  call.launch = LaunchMode::eager_many;
  const Outcome bound = simulated(network, costs, kRing, call);
  EXPECT_NEAR(bound.time_us, device + 4, 1e-9);
  EXPECT_NEAR(bound.chain.sum(), bound.time_us, 1e-3);
}

TEST(LibraryModel, OverlapsHopWithLinks_BySlices) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs(5, 3);
  const double hops_us = 3 + 2 * kNvlinkLatency;
  const Call call = whole(4e6);  // 10 us on a link for each round.
  EXPECT_NEAR(simulated(network, costs, kRing, call).time_us, 5 + 3 * (10 + hops_us), 1e-3);
  costs.slices.fill(2);
  costs.shortest_slice_bytes = 1e3;  // One half travels while the other is on the link.
  EXPECT_NEAR(simulated(network, costs, kRing, call).time_us, 5 + 3 * 10 + hops_us, 1e-3);
  costs.shortest_slice_bytes = 1e6;
  EXPECT_NEAR(simulated(network, costs, kRing, call).time_us, 5 + 3 * (10 + hops_us), 1e-3);
}

// If a slot held one slice, a call just long enough for slices would have half as much data in flight, and would take
// longer.
TEST(LibraryModel, HoldsAllSlicesOfMessage_InOneSlot) {
  const Network network = network_of(cluster_of(1, 2));
  const Wanted wanted = {Collective::broadcast, "direct"};
  Costs costs = plain_costs();
  Call call = whole(64e3);
  call.chunk_bytes = 1e3;
  call.loop.skew = 0;
  call.loop.slots = 1;
  const double unsliced = simulated(network, costs, wanted, call).time_us;
  costs.slices.fill(2);
  costs.shortest_slice_bytes = 500;
  EXPECT_LE(simulated(network, costs, wanted, call).time_us, unsliced);
  EXPECT_GT(simulated(network, costs, wanted, call).time_us, 0.9 * unsliced);  // One message still waits for the other.
}

TEST(LibraryModel, CutsCompressedMessages_ByTheirOwnLength) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs(5, 3);
  costs.encode_gbytes_per_s.fill(1e9);
  costs.decode_gbytes_per_s.fill(1e9);
  costs.slices.fill(2);
  const double hops_us = 3 + 2 * kNvlinkLatency;
  Call call = whole(4e6);
  call.compression = CompressionFormat::int8;
  const double bytes = 1e6 * 130 / 512, us = bytes * 1e-5;  // Bytes of a round on a link.
  costs.shortest_slice_bytes = bytes / 1.5;
  EXPECT_NEAR(simulated(network, costs, kRing, call).time_us, 5 + 3 * (us + hops_us), 1e-2);
  costs.shortest_slice_bytes = bytes / 2.5;  // One half waits for a hop while the other half travels.
  EXPECT_NEAR(simulated(network, costs, kRing, call).time_us, 5 + 3 * (us / 2 + hops_us) + us / 2, 1e-2);
}

TEST(LibraryModel, SlowsBeginningOfCall_WithinHost) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs();
  costs.settle_us = 30;
  const Call call = whole(4e6);  // 10 us on a link for each of three rounds.
  const double settled = simulated(network, costs, kRing, call).time_us;
  costs.unsettled_us = 20;
  const Outcome outcome = simulated(network, costs, kRing, call);
  EXPECT_NEAR(outcome.time_us, settled + 20 * (1 - std::exp(-1.0)), 1e-3);
  EXPECT_NEAR(outcome.chain.sum(), outcome.time_us, 1e-3);
  const Network hosts = network_of(cluster_of(4, 1));
  const double between = simulated(hosts, costs, kRing, call).time_us;
  costs.unsettled_us = 0;
  EXPECT_EQ(simulated(hosts, costs, kRing, call).time_us, between);
}

// Each rank sends 3 messages, then reduces 3.
TEST(LibraryModel, CountsMessagesOfSteps) {
  const Network network = network_of(cluster_of(1, 4));
  const Wanted wanted = {Collective::all_reduce, "one_shot"};
  Costs costs = plain_costs();
  const double without = simulated(network, costs, wanted, whole(4e3)).time_us;
  costs.message_us.fill(2);
  EXPECT_NEAR(simulated(network, costs, wanted, whole(4e3)).time_us, without + 2 * (3 + 3),
              0.2);  // Links work meanwhile.
}

// An all-gather in peers' scratch copies to scratch, reads from that of all peers, and awaits their ends.
TEST(LibraryModel, JoinsReadsOfPeersScratch) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs();
  costs.step_us.fill(100);
  const auto run = [&](Collective collective) {
    return simulated(network, costs, {collective, "direct_staged"}, whole(4));
  };
  const auto steps = [&](Collective collective) { return std::lround(run(collective).time_us / 100); };
  EXPECT_EQ(steps(Collective::all_gather), 1 + 3 + 1);
  EXPECT_EQ(steps(Collective::all_to_all), 3 + 3 + 1);
  const double apart_bytes = run(Collective::all_gather).data_bytes;
  costs.joins_copies = true;
  EXPECT_EQ(steps(Collective::all_gather), 1 + 1 + 1);
  EXPECT_EQ(steps(Collective::all_to_all), 1 + 1 + 1);
  EXPECT_EQ(run(Collective::all_gather).data_bytes, apart_bytes);
}

TEST(LibraryModel, AddsTimeOfReductions) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs();
  const auto time_us = [&](Collective collective) {
    return simulated(network, costs, {collective, collective == Collective::all_reduce ? "one_shot" : "direct"},
                     whole(4e3))
        .time_us;
  };
  const double reduced = time_us(Collective::all_reduce), gathered = time_us(Collective::all_gather);
  costs.fold_gbytes_per_s = 1;  // 3 messages of 4000 bytes.
  EXPECT_NEAR(time_us(Collective::all_reduce), reduced + 12, 1e-3);
  EXPECT_EQ(time_us(Collective::all_gather), gathered);
}

// A rank sends a block to 3 peers, 10 us each on its link, and then receives 3 blocks, 5 us each.
TEST(LibraryModel, DelaysReceives_UntilStoresHavePassedLinks) {
  const Network network = network_of(cluster_of(1, 4));
  const Wanted wanted = {Collective::all_gather, "direct"};
  Costs costs = plain_costs(0);
  costs.step_us.fill(5);
  Call call = whole(4e6);
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 30 + kWay + 5, 1e-3);
  costs.awaits_stores = true;
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 30 + 3 * 5, 1e-3);
  call.protocol = Protocol::ll;  // No fences.
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 30 + kWay + 5, 1e-3);
}

TEST(LibraryModel, HasOwnFigures_ForPeersMemory) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs();
  const auto time_us = [&](const char* algorithm) {
    return simulated(network, costs, {Collective::all_reduce, algorithm}, whole(4e6)).time_us;
  };
  const double mapped = time_us("two_shot_mapped"), lanes = time_us("two_shot");
  costs.mapped_us = 7;
  EXPECT_NEAR(time_us("two_shot_mapped"), mapped + 7, 1e-3);
  costs.mapped_share = 0.5;  // 3 of 4 quarters cross the links, there and back.
  EXPECT_NEAR(time_us("two_shot_mapped"), mapped + 7 + 2 * 30, 0.5);
  EXPECT_EQ(time_us("two_shot"), lanes);
}

// One rank of a host sends to the next host, through another port on each channel.
TEST(LibraryModel, SpreadsTraffic_OverPorts) {
  Cluster cluster = cluster_of(4, 4);
  const double own = simulated(network_of(cluster), plain_costs(), kRing, whole(64e6)).time_us;
  cluster.spread = true;
  const double spread = simulated(network_of(cluster), plain_costs(), kRing, whole(64e6)).time_us;
  EXPECT_GT(own, 15 * 4e6 / 10 * 1e-3);  // 10 GB/s of one port.
  EXPECT_LT(spread, 15 * 4e6 / 40 * 1e-3 * 1.2);
  EXPECT_GT(spread, 15 * 4e6 / 40 * 1e-3);
}

TEST(LibraryModel, CutsCalls_ByBytesOfRank) {
  Costs costs;
  costs.max_channels = 24;
  costs.channel_bytes = {4096, 4096, 4096};
  costs.chunk_bytes = {1e6, 1e5, 1e4};
  costs.chain_chunk_bytes = {3, 2, 1};
  Call call{.bytes = 4096 * 3};
  cut(call, costs, Collective::all_gather, 8);
  EXPECT_EQ(call.channels, 3U);
  EXPECT_EQ(call.chunk_bytes, 1e6);
  call = {.bytes = 8 * 4096 * 2, .protocol = Protocol::ll};
  cut(call, costs, Collective::broadcast, 8);
  EXPECT_EQ(call.channels, 2U);
  EXPECT_EQ(call.chunk_bytes, 2);
  call.bytes = 1e12;
  cut(call, costs, Collective::broadcast, 8);
  EXPECT_EQ(call.channels, 24U);
}

}  // namespace
}  // namespace tutti::simulator::test
