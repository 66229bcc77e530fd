// Plans whose logical ranks map to other ranks.
#include "src/plan/rank_mapping.h"

#include <gtest/gtest.h>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"
#include "src/plan/verify.h"

namespace tutti::test {
namespace {

using Groups = std::vector<std::vector<Rank>>;

TEST(RankMapping, PlacesHostsConsecutively) {
  const RankMapping dealt = rank_mapping_of(std::vector<Rank>{7, 3, 7, 3, 3});
  EXPECT_EQ(dealt.groups, (Groups{{2, 3}}));
  EXPECT_EQ(dealt.order, (std::vector<Rank>{0, 2, 1, 3, 4}));
  const RankMapping ordered = rank_mapping_of(std::vector<Rank>{0, 0, 0, 3, 3});
  EXPECT_EQ(ordered.groups, (Groups{{3, 2}}));
  EXPECT_TRUE(ordered.order.empty());
}

TEST(RankMapping, IsEmpty_ForOneHostOrHostsOfOneRank) {
  EXPECT_TRUE(rank_mapping_of(std::vector<Rank>{4, 4, 4}).groups.empty());
  EXPECT_TRUE(rank_mapping_of(std::vector<Rank>{0, 1, 2}).groups.empty());
}

TEST(RankMapping, PlacesGroupsOfHostConsecutively) {
  const RankMapping one = rank_mapping_of(std::vector<Rank>{0, 0, 0, 0, 0}, std::vector<Rank>{4, 2, 4, 2, 2});
  EXPECT_EQ(one.groups, (Groups{{2, 3}}));
  EXPECT_EQ(one.order, (std::vector<Rank>{0, 2, 1, 3, 4}));
  const RankMapping two = rank_mapping_of(std::vector<Rank>{0, 1, 0, 0, 1, 1}, std::vector<Rank>{0, 1, 2, 0, 1, 1});
  EXPECT_EQ(two.groups, (Groups{{2, 1, 3}, {2, 1}}));
  EXPECT_EQ(two.order, (std::vector<Rank>{0, 3, 2, 1, 4, 5}));
  EXPECT_TRUE(rank_mapping_of(std::vector<Rank>{0, 0, 1}, std::vector<Rank>{0, 0, 2})
                  .groups.empty());  // In the order of the hosts.
  EXPECT_TRUE(rank_mapping_of(std::vector<Rank>{0, 0, 0}, std::vector<Rank>{0, 1, 2})
                  .groups.empty());  // In the order of the ranks.
}

TEST(RankMapping, KeepsBlocksOfRanks) {
  const RankMapping dealt = rank_mapping_of(std::vector<Rank>{0, 1, 0, 1});
  EXPECT_TRUE(applies(dealt, {.collective = Collective::all_reduce, .ranks = 4, .groups = {}}));
  EXPECT_FALSE(applies(dealt, {.collective = Collective::all_gather, .ranks = 4, .groups = {}}));
  EXPECT_TRUE(
      applies(rank_mapping_of(std::vector<Rank>{0, 0, 1, 1}), {.collective = Collective::all_gather, .groups = {}}));
}

TEST(RankMapping, KeepsPlansThatCannotBeMapped) {
  const RankMapping dealt = rank_mapping_of(std::vector<Rank>{0, 1, 0, 1});
  const Problem problem = {.collective = Collective::all_gather, .ranks = 4, .groups = {}};
  const auto plans = map_ranks(dealt, problem, emit_plans(*find(Collective::all_gather, "ring"), problem));
  EXPECT_EQ(plans[1].steps[1].targets[0].peer, 2U);
}

// Verifies the plans as the ranks run them, with their own roots.
TEST(RankMapping, KeepsPlansCorrect) {
  const RankMapping dealt = rank_mapping_of(std::vector<Rank>{0, 1, 2, 0, 1, 0, 0});
  for (const auto& [collective, name] :
       {std::pair{Collective::all_reduce, "hierarchical"}, std::pair{Collective::all_reduce, "hierarchical_ring"},
        std::pair{Collective::broadcast, "chain"}, std::pair{Collective::reduce, "binary_tree"}}) {
    for (Rank root = 0; root < (has_root(collective) ? 7U : 1U); ++root) {
      const Problem problem = {
          .collective = collective, .ranks = 7, .root = root, .in_place = true, .groups = dealt.groups};
      std::vector<Plan> plans = emit_plans(*find(collective, name), logical(dealt, problem));
      for (Plan& plan : plans) fuse(plan);
      plans = map_ranks(dealt, problem, std::move(plans));
      for (Rank rank = 0; rank < 7; ++rank) EXPECT_EQ(plans[rank].steps.self(), rank);
      EXPECT_EQ(verify(plans).status().message(), "") << name << " root " << root;
      EXPECT_EQ(plans[0].problem, problem);
    }
  }
}

// Ranks exchange messages within a host, and with other hosts only on their own rail. The mapping exists for this
// purpose.
TEST(RankMapping, KeepsShardsOnTheirRails) {
  const RankMapping dealt = rank_mapping_of(std::vector<Rank>{0, 1, 0, 1});
  const Problem problem = {.collective = Collective::all_reduce, .ranks = 4, .groups = dealt.groups};
  const auto plans = map_ranks(dealt, problem, emit_plans(*find(Collective::all_reduce, "hierarchical"), problem));
  for (std::size_t i = 0; i < plans[0].steps.size(); ++i) {
    for (const Operand& target : plans[0].steps[i].targets) {
      EXPECT_FALSE(target.space == Space::lane && target.peer == 3) << "the other rail of the other host";
    }
  }
}

}  // namespace
}  // namespace tutti::test
