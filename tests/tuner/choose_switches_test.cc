// Choices of algorithms by switches on GPUs.
#include <gtest/gtest.h>

#include "src/tuner/candidates.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

// A request without such switches runs the same plan with loads and stores.
TEST(Candidates, IncludeSwitches_WhereTheyAdd) {
  Query query = query_on(Collective::all_reduce, 1 << 20);
  query.ring = {.channels = 16, .positions = 4};
  const Algorithm& algorithm = *find(Collective::all_reduce, "switch_staged");
  EXPECT_EQ(ruled_out(query, algorithm, Protocol::simple), "needs NVSwitches that add the type of these elements");
  query.by_switches = true;
  EXPECT_EQ(ruled_out(query, algorithm, Protocol::simple), "");
  for (const bool add : {false, true}) {
    query.by_switches = add;
    query.algorithm = "";
    EXPECT_EQ(choose(query).value().by_switches, add);
    query.algorithm = kSwitchStaged;
    const Choice choice = choose(query).value();
    EXPECT_EQ(choice.algorithm, kSwitchStaged);
    EXPECT_TRUE(choice.staged);
    EXPECT_EQ(choice.by_switches, add);
    EXPECT_EQ(ruled_out(query, algorithm, Protocol::simple), "");
  }
}

// Broadcasts from the size at which LL ends, of six or more ranks.
TEST(ChooseForGpus, ChoosesSwitches_ForBroadcasts) {
  for (const bool mapped : {false, true}) {
    Query query = query_on(Collective::broadcast, 640 << 10);
    query.ring = {.channels = 48, .positions = 4};
    query.on_nvlinks = query.by_switches = true;
    query.mapped = mapped;
    EXPECT_EQ(chosen(query), "switch_staged");
    EXPECT_TRUE(choose(query).value().by_switches);
    query.problem.ranks = 5;
    EXPECT_NE(chosen(query), "switch_staged");
    query.problem.ranks = 8;
    query.block_bytes -= 1;
    EXPECT_NE(chosen(query), "switch_staged");
    query.block_bytes = 64 << 20;
    EXPECT_EQ(chosen(query), "switch_staged");
    query.by_switches = false;
    EXPECT_NE(chosen(query), "switch_staged");
  }
}

// Switches serve these collectives on request: a port carries n / (n - 1) of the bytes of direct_staged.
TEST(ChooseForGpus, ChoosesNoSwitches_ForCollectivesOfOneRound) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    Query query = query_on(collective, 64 << 20);
    query.ring = {.channels = 24, .positions = 4};
    query.on_nvlinks = true;
    const Algorithm& algorithm = *find(collective, kSwitchStaged);
    EXPECT_NE(ruled_out(query, algorithm, Protocol::simple), "");
    query.by_switches = true;
    EXPECT_EQ(ruled_out(query, algorithm, Protocol::simple), "");
    EXPECT_FALSE(choose(query).value().by_switches);
    query.algorithm = kSwitchStaged;
    EXPECT_TRUE(choose(query).value().by_switches);
  }
}

// Six or more ranks gain, from the size at which LL ends.
TEST(ChooseForGpus, ChoosesSwitches_WhereTheyArePredictedToBeFaster) {
  const Query large = [] {
    Query query = query_on(Collective::all_reduce, 64 << 20);
    query.ring = {.channels = 48, .positions = 4};
    query.on_nvlinks = query.by_switches = true;
    return query;
  }();
  const auto with = [&](auto change) {
    Query query = large;
    change(query);
    return chosen(query);
  };
  EXPECT_EQ(chosen(large), kSwitchStaged);
  EXPECT_EQ(with([](Query& query) { query.block_bytes = 640 << 10; }), kSwitchStaged);
  EXPECT_EQ(with([](Query& query) { query.block_bytes = (640 << 10) - 1; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.mapped = true; }), kSwitchStaged);
  EXPECT_EQ(with([](Query& query) { query.problem.ranks = 6; }), kSwitchStaged);
  EXPECT_EQ(with([](Query& query) { query.problem.ranks = 5; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.by_switches = false; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.ring = {}; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.algorithm = "two_shot"; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.compression = CompressionFormat::int8; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.protocol = "Simple"; }), kSwitchStaged) << "the protocol of the ring";
  EXPECT_EQ(with([](Query& query) { query.protocol = "LL"; }), "two_shot");
}

// Buffers in windows that switches access. The staging ring serves smaller sums, and ordinary buffers.
TEST(ChooseForGpus, ChoosesSwitchesInBuffers_ForLargeSums) {
  const auto with = [](Rank ranks, std::uint64_t bytes, auto change) {
    Query query = query_on(Collective::all_reduce, bytes);
    query.problem.ranks = ranks;
    query.ring = {.channels = 24, .positions = 4};
    query.on_nvlinks = query.by_switches = query.mapped = query.by_switches_mapped = true;
    change(query);
    return choose(query).value();
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto on = [&](Rank ranks, std::uint64_t bytes) { return with(ranks, bytes, [](Query&) {}).algorithm; };
  for (const Rank ranks : {6U, 8U}) {
    EXPECT_EQ(on(ranks, 8 * kMiB), kSwitchMapped);
    EXPECT_EQ(on(ranks, 8 * kMiB - 1), kSwitchStaged);
  }
  for (const Rank ranks : {4U, 5U}) {
    EXPECT_EQ(on(ranks, 4 * kMiB + 1), kSwitchMapped);
    EXPECT_EQ(on(ranks, 4 * kMiB), "two_shot_mapped");
  }
  EXPECT_EQ(on(3, 64 * kMiB), "two_shot_mapped");
  EXPECT_EQ(on(9, 64 * kMiB), "two_shot_mapped");
  const auto changed = [&](auto change) { return with(8, 64 * kMiB, change).algorithm; };
  EXPECT_EQ(changed([](Query& query) { query.mapped = false; }), kSwitchStaged);
  EXPECT_EQ(changed([](Query& query) { query.by_switches_mapped = false; }), kSwitchStaged);
  EXPECT_EQ(changed([](Query& query) { query.compression = CompressionFormat::int8; }), "two_shot");
  EXPECT_EQ(changed([](Query& query) { query.algorithm = "two_shot_mapped"; }), "two_shot_mapped");
  EXPECT_EQ(changed([](Query& query) { query.protocol = "Simple"; }), kSwitchMapped);
  EXPECT_EQ(changed([](Query& query) { query.protocol = "LL"; }), "two_shot_mapped");
  const Choice choice = with(8, 64 * kMiB, [](Query&) {});
  EXPECT_TRUE(choice.mapped && choice.by_switches && !choice.staged);
  EXPECT_EQ(choice.protocol, Protocol::simple);
}

TEST(ChooseForGpus, ServesRequestsOfNvls_WhereSwitchesAreFaster) {
  const auto with = [](Collective collective, std::uint64_t bytes, Rank ranks, auto change) {
    Query query = query_on(collective, bytes);
    query.problem.ranks = ranks;
    query.mapped = query.by_switches = query.by_switches_mapped = true;
    change(query);
    return switch_algorithm(query);
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto on = [&](Collective collective, std::uint64_t bytes, Rank ranks = 8) {
    return with(collective, bytes, ranks, [](Query&) {});
  };
  EXPECT_EQ(on(Collective::all_reduce, 8 * kMiB), kSwitchMapped);
  EXPECT_EQ(on(Collective::all_reduce, 8 * kMiB - 1), kSwitchStaged);
  EXPECT_EQ(on(Collective::all_reduce, 4 * kMiB + 1, 4), kSwitchMapped);
  EXPECT_EQ(on(Collective::all_reduce, 4 * kMiB, 4), kSwitchStaged);
  EXPECT_EQ(on(Collective::all_gather, kMiB), kSwitchMapped) << "all blocks count";
  EXPECT_EQ(on(Collective::reduce_scatter, kMiB - 1), kSwitchStaged);
  EXPECT_EQ(on(Collective::broadcast, 64 * kMiB), kSwitchStaged) << "there is no such broadcast in buffers";
  const auto large = [&](auto change) { return with(Collective::all_reduce, 64 * kMiB, 8, change); };
  EXPECT_EQ(large([](Query& query) { query.mapped = false; }), kSwitchStaged);
  EXPECT_EQ(large([](Query& query) { query.by_switches_mapped = false; }), kSwitchStaged);
  EXPECT_EQ(large([](Query& query) { query.protocol = "Simple"; }), kSwitchMapped);
  EXPECT_EQ(large([](Query& query) { query.protocol = "LL"; }), kSwitchStaged) << "its chunks would be small";
}

// A request where no switch serves the buffers runs the same plan with loads and stores.
TEST(ChooseForGpus, RunsSwitchMapped_OnRequest) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    const Algorithm& algorithm = *find(collective, kSwitchMapped);
    Query query = query_on(collective, 1 << 10);
    query.mapped = query.by_switches = true;
    EXPECT_NE(ruled_out(query, algorithm, Protocol::simple), "") << "switches serve the staging ring only";
    for (const bool served : {false, true}) {
      query.by_switches_mapped = served;
      query.algorithm = kSwitchMapped;
      EXPECT_EQ(ruled_out(query, algorithm, Protocol::simple), "");
      EXPECT_EQ(choose(query).value().by_switches, served);
    }
    query.algorithm = "";
    EXPECT_EQ(ruled_out(query, algorithm, Protocol::simple), "");
    query.mapped = false;
    EXPECT_NE(ruled_out(query, algorithm, Protocol::simple), "");
  }
}

}  // namespace
}  // namespace tutti::test
