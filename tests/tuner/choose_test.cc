#include "src/tuner/choose.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/plan/lanes.h"
#include "tests/algorithms/cases.h"
#include "tests/tuner/queries.h"

namespace tutti::test {
namespace {

using test::query;

constexpr Rank kRanks[] = {2, 3, 4, 5, 8, 9, 16, 64, 65, 128};
constexpr std::uint64_t kSizes[] = {1, 8, 560, 561, 4096, 32768, 32769, 1 << 20, 1 << 28};

bool works_in_peers(const std::vector<Plan>& plans, Space space) {
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      for (const std::span<const Operand> side : {step.sources, step.targets}) {
        for (const Operand& operand : side) {
          if (operand.space == space && operand.peer != plan.steps.self()) return true;
        }
      }
    }
  }
  return false;
}

TEST(Choose, ReturnsAlgorithmThatSupportsTheCall) {
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    for (const Rank ranks : kRanks) {
      for (const std::uint64_t bytes : kSizes) {
        for (const bool mapped : {false, true}) {
          Query requested = query(static_cast<Collective>(i), ranks, bytes);
          requested.mapped = mapped;
          const Choice choice = choose(requested).value();
          const Algorithm* algorithm = find(requested.problem.collective, choice.algorithm);
          ASSERT_NE(algorithm, nullptr) << choice.algorithm;
          EXPECT_TRUE(algorithm->supports(requested.problem)) << choice.algorithm;
          EXPECT_TRUE(mapped || !choice.mapped) << choice.algorithm;
        }
      }
    }
  }
}

// A round costs more between hosts, and so does data sent twice.
TEST(Choose, SavesRoundOverNetwork_WhileCheap) {
  const auto algorithm = [](Rank ranks, std::uint64_t bytes) {
    Query requested = query(Collective::all_reduce, ranks, bytes);
    requested.network = true;
    return choose(requested).value().algorithm;
  };
  EXPECT_EQ(algorithm(2, 64 << 10), "one_shot");
  EXPECT_EQ(algorithm(4, 1 << 20), "two_shot");
  EXPECT_EQ(algorithm(8, 8), "one_shot");
  EXPECT_EQ(algorithm(8, 1 << 20), "two_shot");
}

// The work of ranks that share a core adds up, and each message waited for costs a context switch.
TEST(Choose, SendsFewerMessages_WhenCoresAreShared) {
  Query requested = query(Collective::all_reduce, 4, 8);
  requested.network = true;
  Machine machine = machine_of_hosts();
  machine.ranks_per_core = 2;
  for (Level& level : machine.levels) level.latency_us = level.member_gbytes_per_s = 0;  // All on one core.
  requested.machine = &machine;
  EXPECT_EQ(choose(requested).value().algorithm, "recursive_doubling");
  requested.network = false;
  EXPECT_EQ(choose(requested).value().algorithm, "one_shot");
}

// A line arrives sooner, but the receiver is not running.
TEST(Choose, ChoosesProtocolWithLessWork_WhenCoresAreShared) {
  Query requested = query(Collective::all_gather, 4, 512);
  EXPECT_EQ(choose(requested).value().protocol, Protocol::ll);
  Machine machine = machine_of_hosts();
  machine.ranks_per_core = 2;
  requested.machine = &machine;
  EXPECT_EQ(choose(requested).value().protocol, Protocol::simple);
  requested.block_bytes = 64;
  EXPECT_EQ(choose(requested).value().protocol, Protocol::ll);
}

// Two lines are less work than a counter and data; three are more, if no rank waits for them.
TEST(Choose, ChoosesLlForTwoLines_InRootedCallsWithSharedCores) {
  Machine machine = machine_of_hosts();
  machine.ranks_per_core = 2;
  for (const Collective collective :
       {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter}) {
    Query requested = query(collective, 4, 112);
    requested.machine = &machine;
    EXPECT_EQ(choose(requested).value().protocol, Protocol::ll);
    requested.block_bytes = 120;
    EXPECT_EQ(choose(requested).value().protocol, Protocol::simple);
    requested.machine = nullptr;
    EXPECT_EQ(choose(requested).value().protocol, Protocol::ll);
  }
}

// A root that receives from all ranks does more work than any rank of a chain. Its core does not, since other ranks on
// the core do less. Reductions use chains for smaller blocks.
TEST(Choose, GivesRootMoreWork_WhenItsCoreIsShared) {
  const auto chosen = [](Collective collective, std::uint64_t bytes, double ranks_per_core) {
    Machine machine = machine_of_hosts();
    machine.ranks_per_core = ranks_per_core;
    Query requested = query(collective, 4, bytes);
    requested.machine = &machine;
    return choose(requested).value().algorithm;
  };
  EXPECT_EQ(chosen(Collective::broadcast, 8 << 10, 1), "chain");
  EXPECT_EQ(chosen(Collective::broadcast, 8 << 10, 2), "direct");
  EXPECT_EQ(chosen(Collective::broadcast, 128 << 10, 2), "chain");
  EXPECT_EQ(chosen(Collective::reduce, 2 << 10, 2), "direct");
  EXPECT_EQ(chosen(Collective::reduce, 8 << 10, 2), "chain");
}

// A rank that waits for messages of several others is woken by each.
TEST(Choose, WaitsForOneMessageAtATime_WhenCoresAreShared) {
  Query requested = query(Collective::all_gather, 4, 32 << 10);
  requested.network = true;
  Machine machine = machine_of_hosts();
  for (Level& level : machine.levels) level.latency_us = level.member_gbytes_per_s = 0;  // All on one core.
  requested.machine = &machine;
  EXPECT_EQ(choose(requested).value().algorithm, "direct");
  machine.ranks_per_core = 2;
  EXPECT_EQ(choose(requested).value().algorithm, "ring");
  requested.block_bytes = 64 << 10;
  EXPECT_EQ(choose(requested).value().algorithm, "ring");
  requested.block_bytes = 128 << 10;  // Its chunks wait for each other in turn.
  EXPECT_EQ(choose(requested).value().algorithm, "direct");
}

// All ranks exchange the addresses of their buffers before the first byte moves.
TEST(Choose, ChoosesMappedMemory_OnlyWhenWorthTheMeeting) {
  Machine machine = machine_of_hosts();
  const auto chosen = [&](Collective collective, std::uint64_t bytes) {
    Query requested = query(collective, 4, bytes);
    requested.mapped = true;
    requested.machine = &machine;
    return choose(requested).value().algorithm;
  };
  EXPECT_EQ(chosen(Collective::all_gather, 32 << 10), "direct_mapped");
  machine.ranks_per_core = 2;
  EXPECT_EQ(chosen(Collective::all_gather, 32 << 10), "direct");
  EXPECT_EQ(chosen(Collective::all_gather, 128 << 10), "direct_mapped");
  EXPECT_EQ(chosen(Collective::broadcast, 128 << 10), "chain");
  EXPECT_EQ(chosen(Collective::broadcast, 512 << 10), "split_mapped");
}

TEST(Choose, CrossesLinksBetweenHostsOnce) {
  Query requested = query(Collective::all_reduce, 8, 1 << 20);
  for (const std::vector<Rank>& hosts : {std::vector<Rank>{3, 5}, {4, 4}}) {
    requested.problem.groups = {hosts};
    EXPECT_EQ(choose(requested).value().algorithm, "hierarchical");
  }
  requested.problem.collective = Collective::broadcast;
  requested.catalogue = catalogue(Collective::broadcast);
  EXPECT_EQ(choose(requested).value().algorithm, "hierarchical");
  requested.problem.collective = Collective::all_reduce;
  requested.catalogue = catalogue(Collective::all_reduce);
  requested.network = true;
  requested.block_bytes = 4 << 10;  // Few messages between hosts count more than few bytes.
  EXPECT_EQ(choose(requested).value().algorithm, "recursive_doubling");
  requested.block_bytes = 16 << 10;
  EXPECT_EQ(choose(requested).value().algorithm, "hierarchical");
}

// The rank's shard is divided among the hosts: messages between two hosts have the same length for any number of hosts,
// up to a slot.
TEST(Choose, KeepsMessagesBetweenHostsLong) {
  const auto across = [](std::vector<Rank> hosts) {
    Query requested = query(Collective::all_reduce, hosts[0] * static_cast<Rank>(hosts.size()), 1 << 24);
    requested.network = true;
    requested.problem.groups = {std::move(hosts)};
    const Choice choice = choose(requested).value();
    EXPECT_EQ(choice.algorithm, "hierarchical");
    return choice.chunk_bytes / requested.problem.groups[0].size();
  };
  EXPECT_EQ(across({2, 2}), 32U << 10);
  EXPECT_EQ(across({8, 8}), 32U << 10);
  EXPECT_EQ(across({2, 2, 2, 2}), 32U << 10);
  EXPECT_EQ(across({2, 2, 2, 2, 2, 2, 2, 2}), 16U << 10);
}

// A rank has few lanes between hosts: its messages need not get shorter with more ranks.
TEST(Choose, KeepsMessagesBetweenHostsLong_WithManyRanks) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast}) {
    for (const Rank hosts : {2, 4, 8}) {
      Query requested = query(collective, 2 * hosts, 1 << 24);
      requested.network = true;
      requested.problem.groups = {std::vector<Rank>(hosts, 2)};
      const Choice choice = choose(requested).value();
      EXPECT_EQ(choice.algorithm, "hierarchical");
      EXPECT_EQ(choice.chunk_bytes, 64U << 10);
    }
  }
}

// Without reductions, two ranks use shorter chunks if their buffers may be in caches, but not over a network.
TEST(Choose, ChoosesShorterChunks_ForCopiesInCaches) {
  const auto chunk = [](Collective collective, Rank ranks, std::uint64_t bytes, bool network = false) {
    Query requested = query(collective, ranks, bytes);
    requested.network = network;
    return choose(requested).value().chunk_bytes;
  };
  for (const Collective collective : {Collective::broadcast, Collective::gather, Collective::scatter}) {
    EXPECT_EQ(chunk(collective, 2, 4096), 32U << 10);
    EXPECT_EQ(chunk(collective, 2, 8 << 20), 32U << 10);
    EXPECT_EQ(chunk(collective, 2, (8 << 20) + 64), 64U << 10);
    EXPECT_EQ(chunk(collective, 3, 1 << 20), 64U << 10);
    EXPECT_EQ(chunk(collective, 2, 1 << 20, true), 128U << 10);
  }
  EXPECT_EQ(chunk(Collective::reduce, 2, 1 << 20), 64U << 10);
}

// The tuner identifies algorithms by their names only.
TEST(Choose, KnowsAlgorithmsThatUseMappedMemory) {
  for (const cases::Entry& entry : cases::flat_entries()) {
    Query requested = query(entry.collective, 4, 1024);
    requested.algorithm = entry.algorithm->name();
    const Choice choice = choose(requested).value();
    const std::vector<Plan> plans = emit_plans(*entry.algorithm, requested.problem);
    EXPECT_EQ(choice.mapped, works_in_peers(plans, Space::input) || works_in_peers(plans, Space::output))
        << cases::title(entry);
    EXPECT_EQ(choice.staged, works_in_peers(plans, Space::scratch)) << cases::title(entry);
  }
}

// LL requires messages that fit one slot: 560 bytes.
TEST(Choose, ChoosesLl_OnlyWhenLongestMessageFits) {
  constexpr std::uint64_t kBlock = 64;
  for (const cases::Entry& entry : cases::flat_entries()) {
    for (const Rank ranks : {2U, 3U, 5U, 7U, 8U, 16U, 33U}) {
      Query requested = query(entry.collective, ranks, kBlock);
      if (!entry.algorithm->supports(requested.problem)) continue;
      requested.algorithm = entry.algorithm->name();
      const std::vector<Plan> plans =
          cases::fused(emit_plans(*entry.algorithm, requested.problem), cases::Fusion::whole_stages);
      const std::uint64_t longest = longest_message(plans) * kBlock / plans[0].shape.units;
      EXPECT_TRUE(longest <= 560 || choose(requested).value().protocol == Protocol::simple)
          << cases::title(entry) << " of " << ranks;
    }
  }
}

TEST(Choose, HasMeasuredCrossovers) {
  const auto chosen = [](Rank ranks, std::uint64_t bytes, bool mapped = false) {
    Query requested = query(Collective::all_reduce, ranks, bytes);
    requested.mapped = mapped;
    return choose(requested).value();
  };
  EXPECT_EQ(chosen(2, 8).algorithm, "one_shot");
  EXPECT_EQ(chosen(2, 1 << 20).algorithm, "two_shot");
  EXPECT_NE(chosen(64, 8).algorithm, "one_shot");
  EXPECT_EQ(chosen(65, 1 << 20).algorithm, "ring");
  EXPECT_EQ(chosen(2, 1 << 20, true).algorithm, "two_shot_mapped");
  EXPECT_EQ(chosen(2, 8, true).algorithm, "one_shot");
  EXPECT_EQ(chosen(2, 8).protocol, Protocol::ll);
  EXPECT_EQ(chosen(2, 1 << 20).protocol, Protocol::simple);
}

TEST(Choose, AppliesForcedOptions) {
  Query requested = query(Collective::all_reduce, 2, 8);
  requested.algorithm = "ring";
  requested.protocol = "Simple";
  const Choice choice = choose(requested).value();
  EXPECT_EQ(choice.algorithm, "ring");
  EXPECT_EQ(choice.protocol, Protocol::simple);
  requested.protocol = "smoke";
  EXPECT_EQ(choose(requested).status().message(), "unknown protocol 'smoke': must be one of LL, Simple, LL128");
}

}  // namespace
}  // namespace tutti::test
