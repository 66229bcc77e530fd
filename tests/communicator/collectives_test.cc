// Runs every algorithm of the catalogue between ranks, and checks the results.
#include <gtest/gtest.h>

#include "algorithms/catalogue.h"
#include "tests/base/case_sampling.h"
#include "tests/communicator/cases.h"

namespace tutti::test {
namespace {

class Collectives : public testing::TestWithParam<Rank> {};

TEST_P(Collectives, AreCorrect_WithEveryAlgorithm) {
  Communicators ranks = make_ranks(GetParam());
  OneOf cases(5, GetParam());
  for (Problem problem : problems_of(GetParam())) {
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      if (!algorithm->supports(problem)) continue;
      for (const std::size_t count : {1, 3, 17, 100, 1000, 5000, 70'001}) {
        for (const bool in_place : {false, true}) {
          if (!cases.takes()) continue;
          problem.in_place = in_place;
          const std::string_view name = algorithm->name();
          const bool needs_gpus = name.ends_with("_staged") && problem.ranks > 1;
          const bool refused = needs_gpus || (in_place && name.ends_with("_mapped") && !algorithm->supports(problem));
          CommunicatorOptions options;
          options.algorithm = algorithm->name();
          options.update_agreement_hash();
          std::vector<std::int64_t> wrong(ranks.size(), -3);
          const auto statuses = on_all(ranks, [&](Communicator& communicator) {
            return run_case(communicator, {problem, count}, options, wrong[communicator.rank()]);
          });
          for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            if (refused) {  // The call must fail without an effect on later calls.
              ASSERT_EQ(statuses[rank].code(), needs_gpus ? Code::unsupported : Code::invalid_argument)
                  << algorithm->name() << " " << describe(problem);
              continue;
            }
            ASSERT_TRUE(statuses[rank].ok())
                << algorithm->name() << " " << describe(problem) << ": " << statuses[rank].message();
            ASSERT_EQ(wrong[rank], -1) << algorithm->name() << " " << describe(problem) << " count " << count
                                       << " rank " << rank;
          }
          problem.in_place = false;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4, 5, 8));

// Runs 400 calls with the tuner's choices, on lanes and on mapped memory, and with changing sizes. Detects ranks that
// leave lanes or flags in different states.
TEST(Collectives, StaySynchronized_OverManyCalls) {
  Communicators ranks = make_ranks(3);
  const auto statuses = on_all(ranks, [](Communicator& communicator) -> Status {
    for (int i = 0; i < 400; ++i) {
      Case test{{.collective = static_cast<Collective>(i % kCollectives),
                 .ranks = 3,
                 .root = 0,
                 .in_place = i % 3 == 0,
                 .groups = {}},
                static_cast<std::size_t>(1) << (i * 5 % 17)};
      if (has_root(test.problem.collective)) test.problem.root = i % 3;
      std::int64_t wrong = 0;
      TUTTI_CHECK_OK(run_case(communicator, test, communicator.options(), wrong));
      if (wrong != -1) return internal_error("call " + std::to_string(i) + " is wrong at " + std::to_string(wrong));
    }
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace tutti::test
