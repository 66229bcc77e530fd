// The reference interpreter computes correct results for all plans that the verifier accepts, with random schedules.
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/plan/reference_interpreter.h"

namespace tutti::test {
namespace {

using cases::Fusion;

constexpr Loop kLoops[] = {{},
                           {.chunks = 3},
                           {.chunks = 4, .skew = 1},
                           {.chunks = 4, .skew = 2, .order = StageOrder::earliest_first},
                           {.chunks = 2, .longest = 3}};

class Schedules : public testing::TestWithParam<cases::Entry> {
 protected:
  void judge(std::span<const Plan> plans) {
    for (Loop loop : kLoops) {
      const Result<Proof> proof = verify(plans, loop);
      ASSERT_TRUE(proof.ok());
      loop.slots = proof.value().slots;
      if (!suffices(proof.value(), loop)) continue;  // Slices of a round would mix its messages.
      for (int i = 0; i < 4; ++i) {
        const ReferenceResult result = run_reference(plans, loop, ++seed_);
        ASSERT_TRUE(result.ok) << "chunks " << loop.chunks << " skew " << loop.skew << " slots " << loop.slots
                               << " longest " << loop.longest << " seed " << seed_ << ": " << result.text;
      }
    }
  }

  std::uint64_t seed_ = 0;
};

TEST_P(Schedules, ComputeCorrectResults) {
  for (const Rank n : {1, 2, 3, 4, 5, 7, 8}) {
    for (const Problem& problem : cases::problems(GetParam(), n)) {
      const std::vector<Plan> plans = emit_plans(*GetParam().algorithm, problem);
      for (const Fusion fusion : cases::kFusions) {
        SCOPED_TRACE(describe(problem) + ", " + cases::name(fusion));
        judge(cases::fused(plans, fusion));
      }
    }
  }
}

// Callers need not agree on whether they pass one buffer or two.
TEST_P(Schedules, ComputeCorrectResults_WhenOnlySomeRanksAreInPlace) {
  const cases::Entry& entry = GetParam();
  for (const Rank n : {2, 3, 5, 8}) {
    for (const Problem& problem : cases::problems(entry, n)) {
      Problem other = problem;
      other.in_place = !problem.in_place;
      if (!entry.algorithm->supports(other)) continue;
      SCOPED_TRACE(describe(problem) + " on odd ranks");
      std::vector<Plan> plans;
      for (Rank rank = 0; rank < n; ++rank) {
        plans.push_back(emit_plan(*entry.algorithm, rank % 2 == 1 ? problem : other, rank));
        fuse(plans.back());
      }
      for (int i = 0; i < 4; ++i) {
        const ReferenceResult result = run_reference(plans, {.chunks = 2, .slots = 3}, ++seed_);
        ASSERT_TRUE(result.ok) << "seed " << seed_ << ": " << result.text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Schedules, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
