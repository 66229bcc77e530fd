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

// Switches serve these collectives on request: in all-gather and reduce-scatter a port carries n / (n - 1) of the bytes
// of direct_staged, and broadcasts have not been measured.
TEST(ChooseForGpus, ChoosesNoSwitches_ForCollectivesOfOneRound) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast}) {
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
  EXPECT_EQ(with([](Query& query) { query.problem.ranks = 9; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.by_switches = false; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.ring = {}; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.algorithm = "two_shot"; }), "two_shot");
  EXPECT_EQ(with([](Query& query) { query.compression = CompressionFormat::int8; }), "two_shot");
}

}  // namespace
}  // namespace tutti::test
