// Every algorithm of the catalogue, proved on every number of ranks that we promise.
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"

namespace tutti::test {
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

constexpr Fusion kExtremes[] = {Fusion::none, Fusion::stages};

TEST_P(Conformance, HoldsForManyRanks) {
  for (const Rank n : {100, 127, 128, 257}) prove(n, {}, kExtremes);
}

constexpr Loop kLoops[] = {{.chunks = 3},
                           {.chunks = 4, .skew = 1},
                           {.chunks = 5, .skew = 2},
                           {.chunks = 5, .skew = 3, .order = StageOrder::earliest_first}};

// A proof takes as long as there are steps and chunks, and all-to-all has a step for each pair of ranks: so the more
// ranks there are, the fewer of the loops and fusions are combined. Every number of ranks has a loop of several chunks,
// and every loop has each residue of ranks that algorithms tell apart (odd, powers of two, one less, one more).
TEST_P(Conformance, HoldsForPiecesAndSkews) {
  for (const Loop& loop : kLoops) {
    SCOPED_TRACE("chunks " + std::to_string(loop.chunks) + " skew " + std::to_string(loop.skew));
    for (Rank n = 1; n <= 17; ++n) prove(n, loop);
    for (const Rank n : {31, 32, 33}) prove(n, loop, kExtremes);
  }
}

TEST_P(Conformance, HoldsForPiecesAndSkewsOfManyRanks) {
  for (Rank n = 18; n <= 64; ++n) {
    const Loop& loop = kLoops[n % std::size(kLoops)];
    SCOPED_TRACE("chunks " + std::to_string(loop.chunks) + " skew " + std::to_string(loop.skew));
    prove(n, loop, kExtremes);
  }
}

// Those that say so, and no others: what is refused needlessly is a way lost.
TEST_P(Conformance, EndsAlikeWhereMessagesRoundIfItSaysSo) {
  for (Rank n = 2; n <= 33; ++n) {
    for (const Problem& problem : cases::problems(GetParam(), n)) {
      const std::vector<Plan> plans = emit_plans(*GetParam().algorithm, problem);
      for (const Fusion fusion : kExtremes) {
        const Status status = verify(cases::fused(plans, fusion), {}, Messages::rounded).status();
        ASSERT_EQ(status.ok(), GetParam().algorithm->bears_rounding(problem))
            << describe(problem) << ", " << cases::name(fusion) << ": " << status.message();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Conformance, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
