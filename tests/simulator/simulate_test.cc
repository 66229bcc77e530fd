#include "tools/simulator/simulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/plan/plan.h"
#include "tests/simulator/machines.h"
#include "tools/simulator/trace.h"

namespace tutti::simulator::test {
namespace {

using namespace test;

TEST(Simulation, RingTakesTimeOfItsRounds) {
  for (const Rank n : {2U, 5U, 8U}) {
    const Network network = network_of(cluster_of(1, n));
    const double each = 8e6 / n / 100 * 1e-3;  // A block on a link of 100 GB/s.
    const Outcome gather = simulated(network, plain_costs(), {Collective::all_gather, "ring"}, whole(8e6));
    EXPECT_NEAR(gather.time_us, 5 + (n - 1) * (each + kWay), 1e-3) << n;
    const Outcome reduce = simulated(network, plain_costs(), {Collective::all_reduce, "ring"}, whole(8e6));
    EXPECT_NEAR(reduce.time_us, 5 + 2 * (n - 1) * (each + kWay), 1e-3) << n;
    EXPECT_NEAR(reduce.bus_gbytes_per_s, 8e6 / reduce.time_us * 1e-3 * 2 * (n - 1) / n, 1e-9);
  }
}

TEST(Simulation, TwoShotTakesAllBlocksTwice) {
  const Network network = network_of(cluster_of(1, 8));
  const Outcome outcome = simulated(network, plain_costs(), {Collective::all_reduce, "two_shot"}, whole(8e6));
  EXPECT_NEAR(outcome.time_us, 5 + 2 * (7 * 10 + kWay), 1e-3);
}

TEST(Simulation, TreeTakesTimeOfItsDepth) {
  const Network network = network_of(cluster_of(1, 8));
  const Outcome outcome = simulated(network, plain_costs(), {Collective::broadcast, "binary_tree"}, whole(1));
  EXPECT_NEAR(outcome.time_us, 5 + 3 * kWay, 1e-3);
}

TEST(Simulation, ChargesChannelsStepsAndProtocols) {
  const Network network = network_of(cluster_of(1, 2));
  Costs costs = plain_costs();
  costs.channel_gbytes_per_s.fill(10);
  costs.step_us.fill(0.5);
  costs.base_us = {6, 8, 6};
  costs.sent_bytes_per_byte = {1, 2, 1};
  Call call = whole(1e6);
  // Rank 0 sends for 100 us, rank 1 receives for as long; the link of 100 GB/s is faster.
  const Wanted wanted = {Collective::broadcast, "direct"};
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 5 + 1 + 100.5 + kWay + 100.5, 1e-3);
  call.channels = 4;
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 5 + 1 + 25.5 + kWay + 25.5, 1e-3);
  call.channels = 99;  // More channels than exist: 8, so that the link of 100 GB/s is slower for twice the bytes.
  call.protocol = Protocol::ll;
  EXPECT_NEAR(simulated(network, costs, wanted, call).time_us, 5 + 3 + 20 + kWay + 13, 1e-3);
}

// Forwarded messages stay encoded.
TEST(Simulation, ChargesEncodingAndDecoding) {
  Costs costs = plain_costs();
  const auto int8 = static_cast<std::size_t>(CompressionFormat::int8),
             bf16 = static_cast<std::size_t>(CompressionFormat::bf16);
  costs.encode_gbytes_per_s[int8] = 10;
  costs.decode_gbytes_per_s[int8] = 20;
  costs.encode_gbytes_per_s[bf16] = 40;
  costs.decode_gbytes_per_s[bf16] = 50;
  Call call = whole(1e6);
  call.compression = CompressionFormat::int8;
  const Network pair = network_of(cluster_of(1, 2));
  const Outcome sent = simulated(pair, costs, {Collective::broadcast, "direct"}, call);
  EXPECT_NEAR(sent.time_us, 5 + 100 + kWay + 50, 1e-3);
  EXPECT_NEAR(sent.data_bytes, 1e6 * 130 / 512, 1e-6);
  call.type = DataType::bfloat16;  // 2 MB of float32.
  const Outcome half = simulated(pair, costs, {Collective::broadcast, "direct"}, call);
  EXPECT_NEAR(half.time_us, 5 + (200 + 40) + kWay + (100 + 50), 1e-3);
  EXPECT_NEAR(half.data_bytes, 1e6 * 130 / 256, 1e-6);
  call.type = DataType::float32;
  call.bytes = 3e6;
  const Network three = network_of(cluster_of(1, 3));
  EXPECT_NEAR(simulated(three, costs, {Collective::all_gather, "ring"}, call).time_us, 5 + 100 + kWay + 50 + kWay + 50,
              1e-3);
}

TEST(Simulation, DistinguishesTooManyHosts_FromUnsupportedHosts) {
  const Network network = network_of(cluster_of(200'000, 8));
  const Problem problem = problem_on(network, Collective::all_reduce);
  auto simulation =
      Simulation::make(network, plain_costs(), *find(Collective::all_reduce, "hierarchical"), problem, {});
  ASSERT_FALSE(simulation.ok());
  const std::string message = std::move(simulation).status().message();
  EXPECT_NE(message.find("the maximum is 131072 hosts, 1048576 ranks"), std::string::npos) << message;
}

TEST(Simulation, LimitsDataInFlight_BySlots) {
  const Network network = network_of(cluster_of(1, 2));
  Call call = whole(64e3);
  call.chunk_bytes = 1e3;
  call.loop.skew = 0;
  call.loop.slots = 1;
  const Wanted wanted = {Collective::broadcast, "direct"};
  // Each chunk waits until the slot is free again: 0.01 us on the link, there, and back.
  EXPECT_NEAR(simulated(network, plain_costs(), wanted, call).time_us, 5 + 64 * (0.01 + kWay) + 63 * kWay, 1e-2);
  call.loop.slots = 64;
  EXPECT_NEAR(simulated(network, plain_costs(), wanted, call).time_us, 5 + 64 * 0.01 + kWay, 1e-2);
}

TEST(Simulation, FanOutOccupiesChannel_OncePerMessage) {
  Costs costs = plain_costs();
  costs.channel_gbytes_per_s.fill(10);
  const Outcome outcome = simulated(network_of(cluster_of(1, 4)), costs, {Collective::broadcast, "direct"}, whole(1e6));
  EXPECT_NEAR(outcome.time_us, 5 + 3 * 100 + kWay + 100, 1e-2);
}

// A sum in two shots sends to all peers, folds, and receives from all peers, each in a step if messages are joined.
TEST(Simulation, JoinsMessagesOfPeers) {
  const Network network = network_of(cluster_of(1, 4));
  Costs costs = plain_costs();
  costs.step_us.fill(100);
  const auto steps = [&] {
    const Outcome sum = simulated(network, costs, {Collective::all_reduce, "two_shot"}, whole(4));
    return std::lround(sum.time_us / 100);
  };
  EXPECT_EQ(steps(), 3 + 1 + 3);
  costs.joins_copies = true;
  EXPECT_EQ(steps(), 3);
  costs.received_us.fill(50);  // Twice: two hops.
  EXPECT_EQ(steps(), 4);
}

// In each round of bruck, a rank exchanges several blocks with one peer.
TEST(Simulation, JoinsNoMessagesOfOneLane) {
  const Network network = network_of(cluster_of(1, 8));
  Costs costs = plain_costs();
  costs.step_us.fill(100);
  costs.channel_gbytes_per_s.fill(10);
  Call call = whole(8e6);
  call.chunk_bytes = 1e5;
  call.loop.skew = 1;
  call.loop.slots = 4;
  const auto us = [&] { return simulated(network, costs, {Collective::all_gather, "bruck"}, call).time_us; };
  const double apart_us = us();
  costs.joins_copies = true;
  EXPECT_DOUBLE_EQ(us(), apart_us);
}

TEST(Simulation, FreesSlot_AfterReceivingStep) {
  const Network network = network_of(cluster_of(1, 2));
  Costs costs = plain_costs();
  costs.channel_gbytes_per_s.fill(0.1);
  Call call = whole(8e3);
  call.chunk_bytes = 1e3;  // 10 us of a channel each.
  call.loop.skew = 0;
  call.loop.slots = 2;
  // Every other chunk waits for a slot: received 10 + 2.5 us after its send began, for 10 us, and 2.5 us back.
  EXPECT_NEAR(simulated(network, costs, {Collective::broadcast, "direct"}, call).time_us,
              5 + 10 + 3 * 25 + (10 + kWay + 10), 1e-2);
}

TEST(Simulation, SharedPortTakesTwiceAsLong) {
  Cluster cluster = cluster_of(2, 2, 100, 0.1);
  const Wanted wanted = {Collective::all_reduce, "hierarchical"};
  const double own = simulated(network_of(cluster), plain_costs(0, 0), wanted, whole(64e6)).time_us;
  cluster.rails = 1;
  EXPECT_NEAR(simulated(network_of(cluster), plain_costs(0, 0), wanted, whole(64e6)).time_us / own, 2, 0.02);
}

TEST(Simulation, SlowerLinkIsNeverFaster) {
  const Call call = whole(4e6);
  for (const std::string_view name : {"ring", "two_shot", "halving_doubling", "hierarchical", "double_binary_tree"}) {
    const Wanted wanted = {Collective::all_reduce, name};
    Cluster cluster = cluster_of(4, 4);
    double before = simulated(network_of(cluster), plain_costs(), wanted, call).time_us;
    for (const double left : {0.9, 0.5, 0.1, 0.01}) {
      cluster.faults = {{"host1:nic2", left}, {"host2:gpu0", left}};
      const double now = simulated(network_of(cluster), plain_costs(), wanted, call).time_us;
      EXPECT_GE(now, before * (1 - 1e-9)) << name << " with " << left;
      before = now;
    }
  }
}

TEST(Simulation, AppliesOversubscription) {
  Cluster cluster = cluster_of(4, 1);
  cluster.hosts_per_leaf = 2;
  const Wanted wanted = {Collective::all_to_all, "direct"};
  const double full = simulated(network_of(cluster), plain_costs(0, 0), wanted, whole(64e6)).time_us;
  cluster.oversubscription = 4;
  EXPECT_GT(simulated(network_of(cluster), plain_costs(0, 0), wanted, whole(64e6)).time_us, 2 * full);
}

TEST(Simulation, ParallelLinksDoNotWidenPort) {
  Cluster cluster = cluster_of(5, 2);
  cluster.ranks_per_host = 1;
  cluster.hosts_per_leaf = 4;  // The last host has a leaf for itself.
  const Network network = network_of(cluster);
  const Problem problem = problem_on(network, Collective::reduce, 4);
  const auto simulation = Simulation::make(network, plain_costs(), *find(Collective::reduce, "direct"), problem);
  const Outcome outcome = simulation.value().run(whole(1e6)).value();
  EXPECT_GE(outcome.time_us, 5 + 4 * 50) << "Four blocks on two ports of 10 GB/s.";
  for (const KindUse& use : outcome.links) EXPECT_LE(use.busiest_part, 1 + 1e-9) << use.busiest;
}

// Bytes that all ranks' plans send to others, or access in their memory.
double bytes_of_plans(const Algorithm& algorithm, const Problem& problem, double block) {
  double units = 0;
  for (Plan& plan : emit_plans(algorithm, problem)) {
    expand_all_ranks(plan);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& target : plan.steps[i].targets)
        if (target.space == Space::lane || (target.is_memory() && target.peer != plan.steps.self()))
          units += target.count;
      for (const Operand& source : plan.steps[i].sources)
        if (source.is_memory() && source.peer != plan.steps.self()) units += source.count;
    }
  }
  return units * block / algorithm.shape(problem).units;
}

TEST(Simulation, SendsExactlyTheBytesOfPlans) {
  const Network network = network_of(cluster_of(1, 6));
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const Problem problem = problem_on(network, collective);
    for (const Algorithm* algorithm : catalogue(collective)) {
      if (!algorithm->supports(problem)) continue;
      for (const bool symmetric : {true, false}) {
        Limits limits;
        limits.symmetric = symmetric;
        const Outcome outcome = simulated(network, plain_costs(), {collective, algorithm->name()}, whole(6e6), limits);
        const double sent = bytes_of_plans(*algorithm, problem, block_bytes(collective, 6, 6e6));
        EXPECT_NEAR(outcome.data_bytes, sent, sent * 1e-5) << name(collective) << " " << algorithm->name();
        ASSERT_EQ(outcome.links.size(), 1U);
        EXPECT_NEAR(outcome.links[0].bytes, 2 * sent, sent * 1e-5) << "Out of one rank, and into another.";
        EXPECT_NEAR(outcome.chain.sum(), outcome.time_us, outcome.time_us * 1e-4) << algorithm->name();
        EXPECT_LE(outcome.links[0].busiest_part, 1 + 1e-9);
      }
    }
  }
}

TEST(Simulation, CountsEventsInAdvance) {
  const Network network = network_of(cluster_of(1, 6));
  Costs costs = plain_costs();
  costs.slices.fill(2);
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}) {
    const Problem problem = problem_on(network, collective);
    for (const Algorithm* algorithm : catalogue(collective)) {
      if (!algorithm->supports(problem)) continue;
      const auto simulation = Simulation::make(network, costs, *algorithm, problem);
      for (const double bytes : {6.0, 6e6, 6e7}) {
        const Call call{.bytes = bytes, .chunk_bytes = 4e5};
        EXPECT_EQ(simulation.value().events_of(call), simulation.value().run(call).value().events)
            << algorithm->name() << " " << bytes;
      }
    }
  }
}

TEST(Simulation, ExtrapolatesLaterChunksEvenly) {
  const Network network = network_of(cluster_of(4, 4));
  for (const std::string_view name : {"hierarchical", "hierarchical_ring", "double_binary_tree", "two_shot"}) {
    Call call;
    call.bytes = 256e6;
    call.chunk_bytes = 64e3;
    Limits few;
    few.symmetric = false;
    few.max_events = 1;
    Limits all = few;
    all.max_events = 1'000'000'000;
    const Wanted wanted = {Collective::all_reduce, name};
    const Outcome some = simulated(network, plain_costs(), wanted, call, few);
    const Outcome every = simulated(network, plain_costs(), wanted, call, all);
    EXPECT_LT(some.simulated_chunks, every.simulated_chunks);
    EXPECT_NEAR(some.time_us, every.time_us, every.time_us * 0.02) << name;
    EXPECT_NEAR(some.data_bytes, every.data_bytes, every.data_bytes * 1e-6) << name;
    EXPECT_NEAR(some.chain.sum(), some.time_us, some.time_us * 1e-3) << name;
  }
}

TEST(Simulation, DrawsJitterFromSeed) {
  const Network network = network_of(cluster_of(2, 4));
  Call call = whole(1e6);
  const Wanted wanted = {Collective::all_reduce, "ring"};
  Limits limits;
  limits.symmetric = false;
  const double calm = simulated(network, plain_costs(), wanted, call, limits).time_us;
  call.jitter = 0.2;
  const double first = simulated(network, plain_costs(), wanted, call, limits).time_us;
  EXPECT_EQ(first, simulated(network, plain_costs(), wanted, call, limits).time_us);
  EXPECT_GT(first, calm);
  call.seed = 2;
  EXPECT_NE(first, simulated(network, plain_costs(), wanted, call, limits).time_us);
}

TEST(Simulation, AttributesRemoteReads_ToLinks) {
  const Network network = network_of(cluster_of(1, 8));
  const Outcome outcome = simulated(network, plain_costs(), {Collective::all_reduce, "two_shot_mapped"}, whole(8e6));
  EXPECT_LT(outcome.chain.channel, outcome.time_us * 0.01) << "Channels take no time.";
  EXPECT_GT(outcome.chain.links[static_cast<std::size_t>(LinkKind::nvlink)], outcome.time_us * 0.5);
  EXPECT_GE(outcome.chain.channel, -1e-3);
}

TEST(Simulation, TraceShowsStepsAndLinks) {
  const Network network = network_of(cluster_of(1, 3));
  Call call = whole(3e3);
  std::vector<TraceEvent> events;
  call.trace = &events;
  Limits limits;
  limits.symmetric = false;
  const Outcome outcome = simulated(network, plain_costs(), {Collective::all_gather, "ring"}, call, limits);
  std::size_t links = 0;
  for (const TraceEvent& event : events) {
    EXPECT_LE(event.begin_us, event.end_us);
    EXPECT_LE(event.end_us, outcome.time_us + 1e-9);
    links += event.link ? 1 : 0;
  }
  EXPECT_EQ(links, 3 * 2 * 2U);  // Each rank sends two blocks, out of one link and into another.
  const std::string text = chrome_trace(events, network);
  EXPECT_NE(text.find("host0 gpu1 nvlinks out"), std::string::npos);
  EXPECT_NE(text.find("\"rank 2\""), std::string::npos);
}

TEST(Simulation, RejectsUnsupportedAlgorithm) {
  const Network network = network_of(cluster_of(1, 4));
  auto simulation = Simulation::make(network, plain_costs(), *find(Collective::all_reduce, "hierarchical"),
                                     problem_on(network, Collective::all_reduce));
  ASSERT_FALSE(simulation.ok());
  EXPECT_EQ(std::move(simulation).status().code(), Code::invalid_argument);
}

TEST(Simulation, RejectsProgramsBeyondLimits) {
  const Network network = network_of(cluster_of(1, 8));
  const auto error = [&](const ProgramLimits& program) {
    Limits limits;
    limits.symmetric = false;
    limits.program = program;
    auto simulation = Simulation::make(network, plain_costs(), *find(Collective::all_reduce, "two_shot"),
                                       problem_on(network, Collective::all_reduce), limits);
    return simulation.ok() ? "" : std::move(simulation).status().message();
  };
  EXPECT_EQ(error({}), "");
  EXPECT_NE(error({.max_operands = 8 * 14}).find("operands"), std::string::npos);
  EXPECT_NE(error({.max_lanes = 8 * 7 - 1}).find("lanes"), std::string::npos);
}

}  // namespace
}  // namespace tutti::simulator::test
