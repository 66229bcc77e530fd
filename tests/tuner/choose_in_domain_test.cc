// Choices on more than 8 GPUs that NVLinks connect.
#include <gtest/gtest.h>

#include "src/tuner/candidates.h"
#include "tests/tuner/gpu_query.h"

namespace tutti::test {
namespace {

Query query_in_domain(Collective collective, Rank ranks, std::uint64_t block_bytes, bool by_switches = true) {
  Query query = query_on(collective, block_bytes);
  query.problem.ranks = ranks;
  query.on_nvlinks = true;
  query.by_switches = by_switches;
  query.lane_channels = ranks > 32 ? 2 : 8;
  query.ring = {.channels = 48, .positions = 4, .position_bytes = 512 * 1024};
  return query;
}

constexpr std::uint64_t kKiB = 1024;

// One round of LL, two rounds, and the ring.
TEST(ChooseInDomain, ChoosesSums_ByRanksAndBytes) {
  const auto sum = [](Rank ranks, std::uint64_t bytes, bool by_switches = true) {
    return chosen(query_in_domain(Collective::all_reduce, ranks, bytes, by_switches));
  };
  EXPECT_EQ(sum(12, 8), "one_shot");
  EXPECT_EQ(sum(12, 64 * kKiB), "two_shot");
  EXPECT_EQ(sum(12, 512 * kKiB), "two_shot");
  EXPECT_EQ(sum(12, 512 * kKiB + 1), "switch_staged");
  EXPECT_EQ(sum(12, 512 * kKiB + 1, false), "two_shot_staged");
  EXPECT_EQ(sum(16, 4096 * kKiB + 1, false), "two_shot") << "several ranks have enough channels";
  EXPECT_EQ(sum(17, 4096 * kKiB + 1, false), "two_shot_staged");
  EXPECT_EQ(sum(24, 512 * kKiB), "switch_staged");
  EXPECT_EQ(sum(72, 8), "recursive_doubling");
  EXPECT_EQ(sum(72, 64 * kKiB), "switch_staged");
  EXPECT_EQ(sum(72, std::uint64_t{1} << 32), "switch_staged");
}

TEST(ChooseInDomain, ChoosesBlocks_ByTotal) {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
    SCOPED_TRACE(name(collective));
    const std::string_view large = collective == Collective::all_to_all ? "direct_staged" : "switch_staged";
    EXPECT_EQ(chosen(query_in_domain(collective, 12, 64 * kKiB)), "direct");
    EXPECT_EQ(chosen(query_in_domain(collective, 72, 1 * kKiB)), "direct");
    EXPECT_EQ(chosen(query_in_domain(collective, 72, 64 * kKiB)), "direct_staged");
    EXPECT_EQ(chosen(query_in_domain(collective, 72, 1024 * kKiB)), large);
    EXPECT_EQ(chosen(query_in_domain(collective, 72, 1024 * kKiB, false)), "direct_staged");
    EXPECT_EQ(chosen(query_in_domain(collective, 16, 1024 * kKiB, false)), "direct");
    EXPECT_EQ(chosen(query_in_domain(collective, 16, 256 * kKiB, false)), "direct_staged");
  }
}

TEST(ChooseInDomain, ChoosesRootedCalls_ByTotal) {
  const auto choice = [](Collective collective, std::uint64_t bytes, bool by_switches = true) {
    return chosen(query_in_domain(collective, 72, bytes, by_switches));
  };
  EXPECT_EQ(choice(Collective::broadcast, 8 * kKiB), "direct");
  EXPECT_EQ(choice(Collective::broadcast, 32 * kKiB), "binary_tree");
  EXPECT_EQ(choice(Collective::broadcast, 64 * kKiB), "switch_staged");
  EXPECT_EQ(choice(Collective::broadcast, 64 * kKiB, false), "binary_tree");
  EXPECT_EQ(choice(Collective::broadcast, 8192 * kKiB, false), "split_staged");
  EXPECT_EQ(choice(Collective::reduce, 8 * kKiB), "direct");
  EXPECT_EQ(choice(Collective::reduce, 8192 * kKiB), "binary_tree");
}

// Calls that the ring does not serve, and those of few ranks, use the other table.
TEST(ChooseInDomain, LeavesOtherCalls) {
  const auto with = [](const auto& change) {
    Query query = query_in_domain(Collective::all_to_all, 72, 1024 * kKiB);
    change(query);
    return chosen(query);
  };
  EXPECT_EQ(with([](Query&) {}), "direct_staged");
  EXPECT_EQ(with([](Query& query) { query.ring = {}; }), "direct");
  EXPECT_EQ(with([](Query& query) { query.on_nvlinks = false; }), "direct");
  EXPECT_EQ(with([](Query& query) { query.problem.ranks = 8, query.lane_channels = 24; }), "direct");
  EXPECT_EQ(with([](Query& query) { query.protocol = "LL"; }), "direct");
  EXPECT_EQ(with([](Query& query) { query.protocol = "Simple"; }), "direct_staged");
  EXPECT_EQ(with([](Query& query) { query.compression = CompressionFormat::int8; }), "direct");
  Query mapped = query_in_domain(Collective::all_to_all, 16, std::uint64_t{64} << 20);
  mapped.mapped = true;
  EXPECT_EQ(chosen(mapped), "direct_mapped");
}

// Messages of LL would not fit in the slots of few channels.
TEST(ChooseInDomain, ChoosesTheRing_WhereLanesAreShort) {
  Query query = query_in_domain(Collective::all_reduce, 16, 512 * kKiB);
  query.lane_channels = 1;
  query.ll_slot_bytes = 2048;
  EXPECT_EQ(chosen(query), "switch_staged");
  query = query_in_domain(Collective::all_gather, 16, 48 * kKiB);
  EXPECT_EQ(chosen(query), "direct");
  query.lane_channels = 2;
  EXPECT_EQ(chosen(query), "direct_staged");
  query.lane_channels = 8;
  query.protocol = "Simple";
  EXPECT_EQ(chosen(query), "direct_staged") << "without LL";
}

TEST(ChooseInDomain, ChoosesSupportedAlgorithms) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                      Collective::all_to_all, Collective::broadcast, Collective::reduce}) {
    for (const Rank ranks : {9U, 17U, 33U, 72U, 200U}) {
      for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 30; bytes *= 8) {
        for (const bool by_switches : {false, true}) {
          const Query query = query_in_domain(collective, ranks, bytes, by_switches);
          const Choice choice = choose(query).value();
          const Algorithm* algorithm = find(collective, choice.algorithm);
          ASSERT_NE(algorithm, nullptr);
          EXPECT_TRUE(algorithm->supports(query.problem)) << choice.algorithm;
          EXPECT_EQ(ruled_out(query, *algorithm, choice.protocol), "") << choice.algorithm << " of " << ranks;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
