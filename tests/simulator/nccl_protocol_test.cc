#include "tools/simulator/nccl_protocol.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/simulator/machines.h"

namespace tutti::simulator::test {
namespace {

constexpr double kMiB = 1 << 20;

Protocol chosen(std::uint32_t sm, Collective collective, Rank ranks, double bytes) {
  const Result<Protocol> protocol = nccl_protocol(sm, collective, ranks, bytes);
  EXPECT_TRUE(protocol.ok());
  return protocol.value();
}

// Crossovers by the costs that NCCL logged on 2, 4 and 6 H100 (waynehacking8/nccl-collectives-bench).
TEST(NcclProtocol, ChangesWhereLoggedCostsOfRingsCross) {
  struct Costs {
    Rank ranks;
    std::array<double, 3> us, gbytes_per_s;  // LL, LL128, Simple.
  };
  constexpr std::array<Protocol, 3> kOrder = {Protocol::ll, Protocol::ll128, Protocol::simple};
  for (const Costs& logged :
       {Costs{2, {7.8, 17.8, 15.2}, {141, 331, 360}}, Costs{4, {10.2, 25.4, 28.8}, {94, 220.8, 240}},
        Costs{6, {12.6, 33.0, 42.4}, {84.6, 198.7, 216}}}) {
    for (double bytes = 8; bytes <= 8192 * kMiB; bytes *= 2) {
      std::size_t best = 0;
      const auto us = [&](std::size_t i) { return logged.us[i] + bytes * 1e-3 / logged.gbytes_per_s[i]; };
      for (std::size_t i = 1; i < 3; ++i) best = us(i) < us(best) ? i : best;
      EXPECT_EQ(chosen(90, Collective::all_reduce, logged.ranks, bytes), kOrder[best])
          << bytes << " bytes of " << logged.ranks;
    }
  }
}

TEST(NcclProtocol, ChangesLater_ForRingsWithOneRoundPerBlock) {
  EXPECT_EQ(chosen(90, Collective::all_reduce, 4, 4 * kMiB), Protocol::ll128);
  EXPECT_EQ(chosen(90, Collective::all_gather, 4, 2 * kMiB), Protocol::ll);
  EXPECT_EQ(chosen(80, Collective::reduce_scatter, 8, 8 * kMiB), Protocol::ll128);
  EXPECT_EQ(chosen(80, Collective::reduce_scatter, 8, 16 * kMiB), Protocol::simple);
}

// NCCL's estimate for a chain has one hop for any number of ranks, so NCCL never chooses LL128.
TEST(NcclProtocol, NeverChoosesLl128_ForChains) {
  EXPECT_EQ(chosen(80, Collective::broadcast, 8, kMiB / 2), Protocol::ll);
  EXPECT_EQ(chosen(80, Collective::broadcast, 8, kMiB), Protocol::simple);
  EXPECT_EQ(chosen(80, Collective::reduce, 8, 16 * kMiB), Protocol::simple);
}

TEST(NcclProtocol, ChoosesLl_ByBytesPerPeer) {
  EXPECT_EQ(chosen(90, Collective::all_to_all, 8, 8 * 16384), Protocol::ll);
  EXPECT_EQ(chosen(90, Collective::all_to_all, 8, 16 * 16384), Protocol::simple);
}

TEST(NcclProtocol, IsUnsupported_OnOlderDevices) {
  EXPECT_EQ(nccl_protocol(70, Collective::all_reduce, 8, 8).status().code(), Code::unsupported);
}

// A ring pauses once for each chunk, when its last message is copied and nothing is sent; with two stages, twice.
TEST(OneStage, RingPausesOncePerChunk) {
  using namespace test;
  const Network network = network_of(cluster_of(1, 2));
  Costs costs = plain_costs();
  costs.channel_gbytes_per_s.fill(400);
  Call call = whole(800e6);
  call.chunk_bytes = 4e6;  // 100 chunks, 40 us each on a link of 100 GB/s and 10 us in a channel.
  const Wanted ring = {Collective::all_reduce, "ring"};
  Limits limits;
  const double staged = simulated(network, costs, ring, call, limits).time_us;
  limits.program.one_stage = true;
  const double whole_loop = simulated(network, costs, ring, call, limits).time_us;
  EXPECT_LT(whole_loop, staged - 100 * 9);
  EXPECT_GT(whole_loop, 100 * 2 * 40);
}

}  // namespace
}  // namespace tutti::simulator::test
