// Classes of calls that are on trial: that each comes to an end, and that what is tried is what runs.
#include <gtest/gtest.h>

#include "src/communicator/host/learning.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

Learning::Class class_of(std::vector<double> predicted_us) {
  Learning::Class made{Collective::all_gather, 30, {}, Trial(predicted_us)};
  made.candidates.resize(predicted_us.size());
  return made;
}

// All calls in private memory; those that end a stage end it with what this rank alone has seen.
void run_private(Learning::Class& learned, int calls) {
  for (int i = 0; i < calls; ++i) {
    const std::int64_t duration_ns = learned.trial.next() == 0 ? 1000 : 1500;  // Never so far behind that it is out.
    if (learned.took(false, duration_ns)) learned.trial.conclude(learned.trial.seen(), 1);
  }
}

int mapped_until_settled(Learning::Class& learned) {
  int calls = 0;
  for (; calls < 1000 && !learned.trial.settled(); ++calls) EXPECT_FALSE(learned.took(true, 1));
  return calls;
}

// They are as quick as ever when nothing is to be learned any more. Whatever part of the trial private calls came to.
TEST(Classes, StopAskingWhereMemoryIsMapped) {
  for (const int before : {0, 1, 16, 17, 18, 23}) {
    Learning::Class learned = class_of({1, 1.5});
    run_private(learned, before);
    ASSERT_FALSE(learned.trial.settled()) << before;
    EXPECT_EQ(mapped_until_settled(learned), 64) << before;
    EXPECT_EQ(learned.trial.next(), 0U) << before;
    EXPECT_EQ(learned.trial.measured_us(), std::vector<double>(2, 0)) << "of a trial that has not ended";
  }
}

TEST(Classes, GoOnWherePrivateMemoryComesBetween) {
  Learning::Class learned = class_of({1, 1.5});
  for (int i = 0; i < 100; ++i) {
    run_private(learned, 1);
    if (learned.trial.settled()) break;
    for (int mapped = 0; mapped < 10; ++mapped) EXPECT_FALSE(learned.took(true, 1));
    ASSERT_FALSE(learned.trial.settled()) << "after " << i;
  }
  run_private(learned, 1000);
  ASSERT_TRUE(learned.trial.settled());
  const std::vector<double> verdict = learned.trial.measured_us();
  for (int mapped = 0; mapped < 200; ++mapped) EXPECT_FALSE(learned.took(true, 1));
  EXPECT_EQ(learned.trial.measured_us(), verdict) << "what was learned stays";
}

// Lines end at a length, and a class of sizes goes on: those of either side are tried apart.
TEST(Classes, EveryCandidateIsThereForEveryCall) {
  CommunicatorOptions options;
  options.tune = Tune::all;
  const Machine machine = machine_of(Hosts::together(4));
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem;
    problem.collective = static_cast<Collective>(c);
    problem.ranks = 4;
    for (const bool grows : {true, false}) {
      Learning learning(options, 0, "");
      for (std::uint64_t i = 0; i < 2000; i += 4) {
        Query query = query_of(problem, grows ? i + 4 : 2000 - i);
        query.machine = &machine;
        const auto& tried = learning.class_of(query, candidates(query).value()).candidates;
        ASSERT_EQ(tried.size(), candidates(query).value().size());
        for (const Candidate& candidate : tried) {
          const auto choice = choose_like(candidate.choice, query);
          ASSERT_TRUE(choice.ok());
          EXPECT_EQ(choice.value().algorithm, candidate.choice.algorithm) << query.block_bytes;
          EXPECT_EQ(choice.value().protocol, candidate.choice.protocol) << query.block_bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti
