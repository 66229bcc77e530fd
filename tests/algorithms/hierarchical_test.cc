// Hierarchical all-reduce on even and uneven hosts and racks.
#include <numeric>

#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/plan/referee.h"

namespace tutti {
namespace {

using cases::Fusion;
using Groups = std::vector<std::vector<Rank>>;

std::vector<Rank> even(Rank hosts, Rank size) { return std::vector<Rank>(hosts, size); }

const Groups kGroups[] = {{even(2, 2)},
                          {even(4, 8)},
                          {even(8, 16)},
                          {{3, 5}},
                          {{1, 8}},
                          {{5, 6, 7, 8}},
                          {{2, 2, 1}},
                          {even(4, 2), even(2, 2)},
                          {{3, 5, 4, 4, 2}, {2, 3}},
                          {even(16, 4), even(4, 4)},
                          {even(8, 2), even(4, 2), even(2, 2)}};

Problem problem_of(const Groups& groups, bool in_place) {
  const Rank ranks = std::accumulate(groups[0].begin(), groups[0].end(), Rank{0});
  return {.collective = Collective::all_reduce, .ranks = ranks, .in_place = in_place, .groups = groups};
}

class Hierarchical : public testing::TestWithParam<const char*> {
 protected:
  const Algorithm& algorithm() const { return *find(Collective::all_reduce, GetParam()); }
};

TEST_P(Hierarchical, HoldsForEvenAndUnevenGroups) {
  for (const Groups& groups : kGroups) {
    for (const bool in_place : {false, true}) {
      const Problem problem = problem_of(groups, in_place);
      ASSERT_TRUE(algorithm().supports(problem)) << describe(problem);
      const std::vector<Plan> plans = emit_plans(algorithm(), problem);
      for (const Fusion fusion : cases::kFusions) {
        const std::vector<Plan> obeyed = cases::fused(plans, fusion);
        EXPECT_EQ(verify(obeyed).status().message(), "") << describe(problem) << ", " << cases::name(fusion);
        if (problem.ranks > 32 || fusion == Fusion::stages) continue;
        EXPECT_EQ(verify(obeyed, {.pieces = 4, .skew = 1}).status().message(), "") << describe(problem);
        EXPECT_EQ(verify(obeyed, {.pieces = 3, .strands = true}).status().message(), "") << describe(problem);
      }
    }
  }
}

TEST_P(Hierarchical, GivesTheRightNumbers) {
  std::uint64_t seed = 1;
  for (const Groups& groups : kGroups) {
    for (const bool in_place : {false, true}) {
      const Problem problem = problem_of(groups, in_place);
      if (problem.ranks > 20) continue;
      const std::vector<Plan> plans = cases::fused(emit_plans(algorithm(), problem), Fusion::whole_stages);
      for (Loop loop : {Loop{.pieces = 2}, Loop{.pieces = 3, .skew = 1}, Loop{.pieces = 2, .strands = true}}) {
        const Result<Proof> proof = verify(plans, loop);
        ASSERT_TRUE(proof.ok());
        loop.slots = proof.value().slots;
        const RefereeVerdict verdict = referee_run(plans, loop, ++seed);
        EXPECT_TRUE(verdict.ok) << describe(problem) << " seed " << seed << ": " << verdict.text;
      }
    }
  }
}

TEST_P(Hierarchical, RefusesGroupsThatDoNotAddUp) {
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{4, 5}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{8}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{4, 0, 4}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 8, .groups = {{4, 4}, {1, 2}}}));
}

// Each shard has lanes of its own across, and tags have 16 bits.
TEST_P(Hierarchical, RefusesMoreShardsThanTags) {
  EXPECT_TRUE(algorithm().supports({.ranks = 30001, .groups = {{30000, 1}}}));
  EXPECT_FALSE(algorithm().supports({.ranks = 50001, .groups = {{50000, 1}}}));
}

// Each rank's bytes to other hosts: the point of the whole.
TEST_P(Hierarchical, SendsTheLeastAcrossHosts) {
  constexpr Rank hosts = 4, size = 8;
  const Problem problem = problem_of({even(hosts, size)}, false);
  for (const Plan& plan : emit_plans(algorithm(), problem)) {
    std::uint32_t across = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& target : plan.steps[i].targets) {
        if (target.place == Place::lane && target.peer / size != plan.steps.self() / size) across += target.count;
      }
    }
    EXPECT_EQ(across * size * hosts, 2 * (hosts - 1) * plan.shape.units);  // 2(k-1)/k of a shard of S/g.
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Hierarchical, testing::Values("hierarchical", "hierarchical_ring"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace tutti
