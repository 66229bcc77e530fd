// Verifies every algorithm of the catalogue for all supported numbers of ranks.
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/base/case_sampling.h"

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

TEST_P(Conformance, VerifiesUpTo64Ranks) {
  OneOf sample(5);
  for (Rank n = 1; n <= 64; ++n) {
    if (sample.takes()) prove(n, {});
  }
}

constexpr Fusion kExtremes[] = {Fusion::none, Fusion::stages};

TEST_P(Conformance, VerifiesManyRanks) {
  const Rank last = kSlowMotion ? 127 : 257;
  for (const Rank n : {100, 127, 128, 257}) {
    if (n <= last) prove(n, {}, kExtremes);
  }
}

constexpr Loop kLoops[] = {{.chunks = 3},
                           {.chunks = 4, .skew = 1},
                           {.chunks = 5, .skew = 2},
                           {.chunks = 5, .skew = 3, .order = StageOrder::earliest_first}};

// Verification takes time in proportion to steps and chunks, and an all-to-all has a step for each pair of ranks.
// Larger numbers of ranks therefore combine fewer loops and fusions. Every number of ranks has a loop of several
// chunks. Every loop has each residue of ranks that algorithms distinguish (odd, powers of two, one less, one more).
TEST_P(Conformance, VerifiesChunksAndSkews) {
  OneOf sample(4);
  for (const Loop& loop : kLoops) {
    SCOPED_TRACE("chunks " + std::to_string(loop.chunks) + " skew " + std::to_string(loop.skew));
    for (Rank n = 1; n <= 17; ++n) {
      if (sample.takes()) prove(n, loop);
    }
    if (kSlowMotion) continue;
    for (const Rank n : {31, 32, 33}) prove(n, loop, kExtremes);
  }
}

TEST_P(Conformance, VerifiesChunksAndSkews_OfManyRanks) {
  OneOf sample(7);
  for (Rank n = 18; n <= 64; ++n) {
    if (!sample.takes()) continue;
    const Loop& loop = kLoops[n % std::size(kLoops)];
    SCOPED_TRACE("chunks " + std::to_string(loop.chunks) + " skew " + std::to_string(loop.skew));
    prove(n, loop, kExtremes);
  }
}

// Ranks end with the same bits exactly if the algorithm claims to support compression. The tuner would never use an
// algorithm that needlessly denies support.
TEST_P(Conformance, EndsIdenticalOnAllRanks_WhenCompressionIsSupported) {
  for (Rank n = 2; n <= 33; ++n) {
    for (const Problem& problem : cases::problems(GetParam(), n)) {
      const std::vector<Plan> plans = emit_plans(*GetParam().algorithm, problem);
      for (const Fusion fusion : kExtremes) {
        const Status status = verify(cases::fused(plans, fusion), {}, Messages::rounded).status();
        ASSERT_EQ(status.ok(), GetParam().algorithm->supports_compression(problem))
            << describe(problem) << ", " << cases::name(fusion) << ": " << status.message();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Conformance, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
