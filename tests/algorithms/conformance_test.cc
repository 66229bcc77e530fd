// Every algorithm of the catalogue, proved on every number of ranks that we promise.
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"

namespace tutti {
namespace {

using cases::Fusion;

class Conformance : public testing::TestWithParam<cases::Entry> {
 protected:
  static void prove(Rank n, const Loop& loop, std::span<const Fusion> fusions = cases::kFusions) {
    for (const Problem& problem : cases::problems(GetParam(), n)) {
      const std::vector<Plan> plans = emit_plans(*GetParam().algorithm, problem);
      for (const Fusion fusion : fusions) {
        const std::string failure = verify(cases::fused(plans, fusion), loop).status().message();
        ASSERT_EQ(failure, "") << describe(problem) << ", " << cases::name(fusion);
      }
    }
  }
};

TEST_P(Conformance, HoldsForEveryNumberOfRanksTo64) {
  for (Rank n = 1; n <= 64; ++n) prove(n, {});
}

TEST_P(Conformance, HoldsForManyRanks) {
  constexpr Fusion extremes[] = {Fusion::none, Fusion::stages};
  for (const Rank n : {100, 127, 128, 257}) prove(n, {}, extremes);
}

TEST_P(Conformance, HoldsForPiecesSkewsAndStrands) {
  const Loop loops[] = {{.pieces = 3},
                        {.pieces = 4, .skew = 1},
                        {.pieces = 5, .skew = 2},
                        {.pieces = 5, .skew = 3, .order = StageOrder::earliest_first},
                        {.pieces = 3, .strands = true},
                        {.pieces = 3, .skew = 1, .banks = 2}};
  for (const Loop& loop : loops) {
    for (const Rank n : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
      SCOPED_TRACE("pieces " + std::to_string(loop.pieces) + " skew " + std::to_string(loop.skew));
      prove(n, loop);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Conformance, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti
