// Reductions and multicasts in switches (NVLS), for plans in peers' memory.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "tests/simulator/machines.h"
#include "tools/simulator/nccl_protocol.h"

namespace tutti::simulator::test {
namespace {

using namespace test;

constexpr double kMiB = 1 << 20;
const Wanted kAllReduce = {Collective::all_reduce, "two_shot_mapped"};
const Wanted kAllGather = {Collective::all_gather, "direct_mapped"};
const Wanted kReduceScatter = {Collective::reduce_scatter, "direct_mapped"};

Costs switch_costs() {
  Costs costs = plain_costs();
  costs.multicast = 1;
  costs.multicast_base_us = 5;
  return costs;
}

Limits by_switches(bool symmetric = true) {
  Limits limits;
  limits.symmetric = symmetric;
  limits.program.multicast = true;
  return limits;
}

Call in_chunks(double bytes, double chunk_bytes) {
  Call call = whole(bytes);
  call.chunk_bytes = chunk_bytes;
  return call;
}

// (n + 1) / n S leaves each rank and arrives there, instead of 2 (n - 1) / n S. In an all-gather and a reduce-scatter:
// S in one direction, and S / n in the other.
TEST(Multicast, SendsEachPartOnce_OverEachLink) {
  for (const Rank n : {2U, 4U, 7U}) {
    const Network network = network_of(cluster_of(1, n));
    for (const bool symmetric : {true, false}) {
      const double bytes = 1e6 * n;
      for (const auto& [wanted, sent, taken] :
           {std::tuple{kAllReduce, n + 1.0, n + 1.0}, {kAllGather, 1.0, n * 1.0}, {kReduceScatter, n * 1.0, 1.0}}) {
        const Outcome outcome =
            simulated(network, switch_costs(), wanted, in_chunks(bytes, 1e4), by_switches(symmetric));
        EXPECT_NEAR(outcome.data_bytes, sent * bytes, 1) << wanted.algorithm << " of " << n;
        ASSERT_EQ(outcome.links.size(), 1U);
        EXPECT_NEAR(outcome.links[0].bytes, (sent + taken) * bytes, 1) << wanted.algorithm << " of " << n;
        EXPECT_NEAR(outcome.chain.sum(), outcome.time_us, outcome.time_us * 1e-4);
      }
    }
  }
}

TEST(Multicast, AllReduceTakesTimeOfBusiestLink) {
  for (const Rank n : {4U, 8U}) {
    const Network network = network_of(cluster_of(1, n));
    const double bytes = 800e6;
    const double links_us = bytes * (1 + 1.0 / n) / 100 * 1e-3;
    for (const bool symmetric : {true, false}) {
      const double us =
          simulated(network, switch_costs(), kAllReduce, in_chunks(bytes, 1e6), by_switches(symmetric)).time_us;
      EXPECT_GT(us, links_us);
      EXPECT_LT(us, links_us * 1.02) << n;
    }
    // Without the switches each peer's part is sent separately.
    EXPECT_GT(simulated(network, switch_costs(), kAllReduce, in_chunks(bytes, 1e6)).time_us,
              bytes * 2 * (1 - 1.0 / n) / 100 * 1e-3);
  }
}

TEST(Multicast, UsesReducedRateOfLinks) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = switch_costs();
  const Call call = in_chunks(400e6, 1e6);
  const double whole_rate = simulated(network, costs, kAllReduce, call, by_switches()).time_us;
  costs.multicast = 0.5;
  EXPECT_NEAR(simulated(network, costs, kAllReduce, call, by_switches()).time_us / whole_rate, 2, 0.02);
  EXPECT_NEAR(simulated(network, costs, kAllReduce, call).time_us,
              simulated(network, switch_costs(), kAllReduce, call).time_us, 1e-6);
}

TEST(Multicast, ReducesRate_WithMoreRanks) {
  const Call call = in_chunks(400e6, 1e6);
  const auto time_us = [&](Rank ranks, double part, double falls) {
    Costs costs = switch_costs();
    costs.multicast = part;
    costs.multicast_falls = falls;
    return simulated(network_of(cluster_of(1, ranks)), costs, kAllReduce, call, by_switches()).time_us;
  };
  EXPECT_NEAR(time_us(8, 0.6, 0.1), time_us(8, 0.6, 0), 1e-6);
  EXPECT_NEAR(time_us(4, 0.6, 0.1), time_us(4, 0.7, 0), 1e-6);
  EXPECT_NEAR(time_us(16, 0.6, 0.1), time_us(16, 0.5, 0), 1e-6);
  EXPECT_NEAR(time_us(16, 0.6, 0.9), time_us(16, 0.1, 0), 1e-6) << "Never none at all.";
}

// 25 chunks of each rank's part, each of which the channel copies for every head.
TEST(Multicast, AddsTimePerChunkAndHead) {
  Costs costs = switch_costs();
  costs.multicast_us = 250;
  const auto time_us = [&](Rank ranks, double chunks) {
    return simulated(network_of(cluster_of(1, ranks)), costs, kAllReduce, in_chunks(ranks * chunks * 4e4, 4e4),
                     by_switches())
        .time_us;
  };
  const double us = time_us(4, 25);
  EXPECT_NEAR(us, 5 + 25 * 4 * 250, 20);
  EXPECT_NEAR(time_us(4, 250), 5 + 250 * 4 * 250, 20) << "However many there are.";
  EXPECT_NEAR(time_us(8, 25), 5 + 25 * 8 * 250, 20);
  EXPECT_NEAR(time_us(64, 25), 5 + 25 * 32 * 250, 200) << "No more ranks reduce than are heads.";
  costs.multicast_base_us = 105;
  EXPECT_NEAR(time_us(4, 25), us + 100, 1e-6);
}

// 100 chunks, each of which is on the links for 50 us and copied for 20.
TEST(Multicast, CopiesFirstAndLastChunk_OutsideTheLinks) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = switch_costs();
  const Call call = in_chunks(400e6, 1e6);
  const double links_us = simulated(network, costs, kAllReduce, call, by_switches()).time_us;
  costs.channel_gbytes_per_s.fill(400);
  EXPECT_NEAR(simulated(network, costs, kAllReduce, call, by_switches()).time_us, links_us + 2 * 20, 1);
  costs.multicast_us = 2;
  EXPECT_NEAR(simulated(network, costs, kAllReduce, call, by_switches()).time_us, links_us + 2 * 20 + 4 * 2, 1)
      << "Before the first there is nothing to wait for.";
}

// Switches forward results while data still arrive: a single chunk occupies each link for its parts, in and out.
TEST(Multicast, ForwardsSingleChunk_WhileReducing) {
  for (const Rank n : {4U, 8U}) {
    const double bytes = n * 1e6;
    const double us =
        simulated(network_of(cluster_of(1, n)), switch_costs(), kAllReduce, in_chunks(bytes, 1e6), by_switches())
            .time_us;
    EXPECT_NEAR(us, 5 + bytes * (1 + 1.0 / n) / 100 * 1e-3, 6) << n;
  }
}

// Calls with multicast have no startup loss: the copies of the first chunk take its place.
TEST(Multicast, HasNoStartupLoss) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = switch_costs();
  const Call call = in_chunks(40e6, 1e6);
  const double us = simulated(network, costs, kAllReduce, call, by_switches()).time_us;
  const double by_ranks_us = simulated(network, costs, kAllReduce, call).time_us;
  costs.unsettled_us = 100;
  EXPECT_NEAR(simulated(network, costs, kAllReduce, call, by_switches()).time_us, us, 1e-6);
  EXPECT_GT(simulated(network, costs, kAllReduce, call).time_us, by_ranks_us + 10);
}

// A channel copies its rank's whole input and whole output.
TEST(Multicast, CopiesInputAndOutput_InChannels) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = switch_costs();
  costs.channel_gbytes_per_s.fill(1);
  const double us = simulated(network, costs, kAllReduce, in_chunks(4e6, 1e4), by_switches()).time_us;
  EXPECT_NEAR(us, 2 * 4e6 * 1e-3 * 1.01, 30);
  EXPECT_NEAR(simulated(network, costs, kAllGather, in_chunks(4e6, 1e4), by_switches()).time_us, us / 2, 30);
}

// A chunk is a copy to scratch, a sum by switches, and a copy from scratch. Chunks overlap.
TEST(Multicast, SumsInScratch_BesideCopies) {
  constexpr Wanted kStaged = {Collective::all_reduce, "switch_staged"};
  constexpr double kChannelRate = 10, kBytes = 400 * 6.4e6;
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = switch_costs();
  costs.joins_copies = true;
  Call call = in_chunks(kBytes, 2 * 6.4e6);  // Contributions and results.
  call.loop.skew = 1;
  const auto run = [&] { return simulated(network, costs, kStaged, call, by_switches()); };
  const Outcome by_links = run();
  EXPECT_NEAR(by_links.data_bytes, 5 * kBytes, 1) << "(n + 1) / n per rank";
  EXPECT_EQ(by_links.chunks, 400U);
  const double links_us = kBytes * 1.25 / 100 * 1e-3;
  EXPECT_NEAR(by_links.time_us, links_us, 0.03 * links_us);
  costs.multicast_base_us = 1000;
  EXPECT_NEAR(run().time_us, by_links.time_us, 1e-6) << "NCCL's start is not Tutti's";
  costs.channel_gbytes_per_s.fill(kChannelRate);
  const double copies_us = kBytes * 2.25 / kChannelRate * 1e-3;  // Two copies, and a quarter loaded and stored.
  EXPECT_NEAR(run().time_us, copies_us, 0.03 * copies_us);
}

// A step loads the sum of a unit and stores it to all, without copies. The call begins as others in buffers of peers.
TEST(Multicast, SumsInBuffers_WithoutCopies) {
  constexpr Wanted kMapped = {Collective::all_reduce, "switch_mapped"};
  constexpr double kBytes = 2.56e9;
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = switch_costs();
  const auto run = [&] { return simulated(network, costs, kMapped, in_chunks(kBytes, kBytes), by_switches()); };
  const Outcome by_links = run();
  EXPECT_NEAR(by_links.data_bytes, 5 * kBytes, 1) << "(n + 1) / n per rank";
  const double links_us = kBytes * 1.25 / 100 * 1e-3;
  EXPECT_NEAR(by_links.time_us, links_us, 0.03 * links_us);
  costs.multicast_base_us = 1000;
  EXPECT_NEAR(run().time_us, by_links.time_us, 1e-6) << "NCCL's start is not Tutti's";
  costs.mapped_us = 50;
  EXPECT_NEAR(run().time_us, by_links.time_us + 50, 1e-6);
  costs.channel_gbytes_per_s.fill(1);
  const double unit_us = kBytes / 4 * 1e-3;
  EXPECT_NEAR(run().time_us, unit_us, 0.03 * unit_us) << "a channel moves its unit once";
}

std::string refused(const Cluster& cluster, const Costs& costs, const Wanted& wanted) {
  const Network network = network_of(cluster);
  const Problem problem = problem_on(network, wanted.collective);
  auto made = Simulation::make(network, costs, *find(wanted.collective, wanted.algorithm), problem, by_switches());
  if (made.ok()) return "";
  const Status status = std::move(made).status();
  EXPECT_EQ(status.code(), Code::unsupported) << wanted.algorithm;
  return std::string(status.message());
}

TEST(Multicast, IsRejected_WithoutSwitchSupport) {
  EXPECT_NE(refused(cluster_of(2, 4), switch_costs(), kAllReduce).find("no NVSwitches connect all ranks"),
            std::string::npos);
  EXPECT_NE(refused(cluster_of(1, 4), plain_costs(), kAllReduce).find("cost model plain has no reductions"),
            std::string::npos);
  for (const std::string_view name : {"ring", "two_shot", "one_shot"})
    EXPECT_NE(refused(cluster_of(1, 4), switch_costs(), {Collective::all_reduce, name}).find("between two ranks"),
              std::string::npos)
        << name;
  EXPECT_NE(
      refused(cluster_of(1, 4), switch_costs(), {Collective::all_to_all, "direct_mapped"}).find("between two ranks"),
      std::string::npos);
}

bool takes_nvls(std::uint32_t sm, Collective collective, Rank ranks, double bytes) {
  const Result<bool> taken = nccl_takes_nvls(sm, collective, ranks, bytes);
  EXPECT_TRUE(taken.ok());
  return taken.ok() && taken.value();
}

// Choices that NCCL 2.27 logged on 4 to 8 H200 and B200 (stas00/ml-engineering, network).
TEST(NcclNvls, IsChosen_WhereNcclLoggedIt) {
  for (const Rank ranks : {2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    EXPECT_EQ(takes_nvls(90, Collective::all_reduce, ranks, 8192 * kMiB), ranks > 4) << ranks;
    EXPECT_EQ(takes_nvls(100, Collective::all_reduce, ranks, 8192 * kMiB), ranks > 5) << ranks;
  }
  EXPECT_FALSE(takes_nvls(90, Collective::all_reduce, 8, kMiB));
  EXPECT_TRUE(takes_nvls(90, Collective::all_reduce, 8, 2 * kMiB));
  for (double bytes = 8; bytes <= 16384 * kMiB; bytes *= 2) {
    EXPECT_FALSE(takes_nvls(90, Collective::all_gather, 8, bytes)) << bytes;
    EXPECT_FALSE(takes_nvls(90, Collective::reduce_scatter, 8, bytes)) << bytes;
    EXPECT_FALSE(takes_nvls(90, Collective::broadcast, 8, bytes)) << bytes;
    EXPECT_FALSE(takes_nvls(90, Collective::all_to_all, 8, bytes)) << bytes;
    EXPECT_FALSE(takes_nvls(80, Collective::all_reduce, 8, bytes)) << bytes;
  }
  EXPECT_TRUE(takes_nvls(100, Collective::all_reduce, 72, 8192 * kMiB));
  EXPECT_EQ(nccl_takes_nvls(70, Collective::all_reduce, 8, 8).status().code(), Code::unsupported);
}

}  // namespace
}  // namespace tutti::simulator::test
