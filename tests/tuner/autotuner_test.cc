#include "src/tuner/autotuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace tutti::test {
namespace {

// Duration of operation `operation` on a rank with a candidate.
using Durations = std::function<std::int64_t(std::size_t rank, std::size_t candidate, std::uint32_t operation)>;

// Ranks that run the same operations. Each stage adds up their times.
struct Ranks {
  Ranks(std::size_t ranks, std::vector<double> predicted_us, const AutotunerOptions& terms = {})
      : predicted(std::move(predicted_us)), autotuners(ranks, Autotuner(predicted, terms)) {}

  // Runs until the class has settled. Fails if ranks differ in the candidates or in the time of the result.
  void run(const Durations& durations) {
    while (!autotuners[0].settled()) {
      ASSERT_LT(operations, autotuners[0].max_operations());
      const std::size_t candidate = autotuners[0].next();
      std::size_t ended = 0;
      for (std::size_t rank = 0; rank < autotuners.size(); ++rank) {
        ASSERT_EQ(autotuners[rank].next(), candidate) << "rank " << rank << " in operation " << operations;
        const std::int64_t duration = durations(rank, candidate, operations);
        total_ns += duration;
        ended += autotuners[rank].record(duration) ? 1 : 0;
      }
      tried.push_back(candidate);
      ++operations;
      if (ended == 0) continue;
      ASSERT_EQ(ended, autotuners.size());
      conclude();
    }
    for (const Autotuner& autotuner : autotuners) {
      ASSERT_TRUE(autotuner.settled());
      ASSERT_EQ(autotuner.next(), autotuners[0].next());
    }
  }

  void conclude() {
    std::vector<std::uint64_t> sums(autotuners[0].measurements().size());
    for (const Autotuner& autotuner : autotuners) {
      const std::vector<std::uint64_t> seen = autotuner.measurements();
      ASSERT_EQ(seen.size(), sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += seen[i];
    }
    for (Autotuner& autotuner : autotuners) autotuner.conclude(sums, static_cast<std::uint32_t>(autotuners.size()));
    ++conclusions;
  }

  std::size_t result() const { return autotuners[0].next(); }
  std::size_t times_tried(std::size_t candidate) const {
    return static_cast<std::size_t>(std::count(tried.begin(), tried.end(), candidate));
  }

  std::vector<double> predicted;
  std::vector<Autotuner> autotuners;
  std::vector<std::size_t> tried;  // By operation.
  std::uint32_t operations = 0;
  std::uint32_t conclusions = 0;
  std::int64_t total_ns = 0;
};

TEST(Autotuner, KeepsFastest_WhicheverWasPredictedFirst) {
  for (std::size_t fastest = 0; fastest < 3; ++fastest) {
    Ranks ranks(2, {10, 11, 12});
    ranks.run([&](auto, std::size_t candidate, auto) { return candidate == fastest ? 9'000 : 10'000; });
    EXPECT_EQ(ranks.result(), fastest);
    EXPECT_LE(ranks.conclusions, 3U);
  }
}

TEST(Autotuner, BeginsWithDefaultCandidate) {
  Ranks ranks(1, {10, 11});
  ranks.run([](auto, auto, auto) { return 10'000; });
  const auto first_other = std::find(ranks.tried.begin(), ranks.tried.end(), 1U) - ranks.tried.begin();
  EXPECT_GE(first_other, 16);
}

TEST(Autotuner, SkipsCandidatesPredictedFarSlower) {
  Ranks ranks(2, {10, 19, 21, 200});
  ranks.run([](auto, std::size_t candidate, auto) { return candidate == 1 ? 12'000 : 11'000; });
  EXPECT_GT(ranks.times_tried(1), 0U);
  EXPECT_EQ(ranks.times_tried(2), 0U);
  EXPECT_EQ(ranks.times_tried(3), 0U);
}

TEST(Autotuner, SettlesAtOnce_WithOneCandidate) {
  EXPECT_TRUE(Autotuner(std::vector<double>{10}).settled());
  EXPECT_TRUE(Autotuner(std::vector<double>{10, 30}).settled());
  EXPECT_EQ(Autotuner(std::vector<double>{10, 30}).max_operations(), 0U);
}

TEST(Autotuner, StaysWithinBudget) {
  const AutotunerOptions terms;
  for (const double best_us : {0.05, 1.0, 50.0, 3000.0, 100'000.0}) {
    Ranks ranks(1, {best_us, 1.1 * best_us, 1.5 * best_us, 1.9 * best_us});
    double spent_us = 0;
    ranks.run([&](auto, std::size_t candidate, auto) {
      spent_us += ranks.predicted[candidate] - best_us;
      return static_cast<std::int64_t>(best_us * 1e3);
    });
    EXPECT_LE(spent_us, terms.budget_us) << best_us << " us";
  }
}

TEST(Autotuner, DropsCandidatesFarBehind_AfterFirstPass) {
  Ranks ranks(2, {10, 11, 12});
  ranks.run([](auto, std::size_t candidate, auto) { return candidate == 1 ? 1'000'000 : 10'000; });
  EXPECT_LE(ranks.times_tried(1), 17U);
  EXPECT_EQ(ranks.result(), 0U);
  EXPECT_GT(ranks.times_tried(2), 20U);
}

TEST(Autotuner, DropsNothing_ForAFewSlowOperations) {
  Ranks ranks(2, {1, 1.1});
  ranks.run([](auto, std::size_t candidate, std::uint32_t operation) {
    return operation >= 16 && operation < 26 ? 4'000'000 : candidate == 0 ? 900 : 1000;
  });
  EXPECT_EQ(ranks.result(), 0U);
}

TEST(Autotuner, DropsDefault_WhenFarBehind) {
  Ranks ranks(2, {10, 11});
  ranks.run([](auto, std::size_t candidate, auto) { return candidate == 0 ? 1'000'000 : 10'000; });
  EXPECT_EQ(ranks.result(), 1U);
  EXPECT_LE(ranks.times_tried(0), 16U + 17U);
}

TEST(Autotuner, KeepsDefault_WhenOthersAreHardlyFaster) {
  Ranks ranks(2, {10, 11});
  ranks.run([](auto, std::size_t candidate, auto) { return candidate == 1 ? 9'950 : 10'000; });
  EXPECT_EQ(ranks.result(), 0U);
}

// The times of any single rank would give another result.
TEST(Autotuner, SumsTimesOfAllRanks) {
  Ranks ranks(2, {10, 11});
  ranks.run([](std::size_t rank, std::size_t candidate, auto) {
    return rank == 0 ? (candidate == 0 ? 10'000 : 13'000) : (candidate == 0 ? 16'000 : 10'000);
  });
  EXPECT_EQ(ranks.result(), 1U);
  EXPECT_DOUBLE_EQ(ranks.autotuners[1].measured_us()[0], 13);
  EXPECT_DOUBLE_EQ(ranks.autotuners[1].measured_us()[1], 11.5);
}

// The first operation of a burst is delayed by the previous candidate, or creates a plan.
TEST(Autotuner, IgnoresFirstOperationAfterSwitch) {
  Ranks ranks(2, {10'000, 11'000});
  std::size_t last = 0;
  ranks.run([&](std::size_t rank, std::size_t candidate, auto) {
    const bool changed = candidate != last;
    if (rank == 1) last = candidate;
    return candidate == 1 ? (changed ? 90'000'000 : 9'000'000) : 10'000'000;
  });
  EXPECT_EQ(ranks.result(), 1U);
}

TEST(Autotuner, ToleratesInterruptedOperations) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Ranks ranks(4, {10, 11, 12, 13});
    const std::size_t fastest = random() % 4;
    std::vector<std::uint32_t> left(4);  // Operations of each candidate until one is interrupted, once, on some rank.
    for (std::uint32_t& each : left) each = 4 * (20 + random() % 150);
    ranks.run([&](std::size_t, std::size_t candidate, auto) -> std::int64_t {
      const std::int64_t usual = (candidate == fastest ? 9'000 : 10'500) + static_cast<std::int64_t>(random() % 200);
      return --left[candidate] == 0 ? usual + 4'000'000 : usual;
    });
    ASSERT_EQ(ranks.result(), fastest) << "round " << round;
  }
}

TEST(Autotuner, GivesSameResultOnAllRanks_WithAnyTimes) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> predicted(1 + random() % 6);
    double us = std::exp2(static_cast<double>(random() % 24) - 6);
    for (double& each : predicted) each = us *= 1 + static_cast<double>(random() % 100) / 200;
    Ranks ranks(1 + random() % 5, predicted);
    ranks.run([&](auto...) {
      return static_cast<std::int64_t>(random() % 7 == 0 ? random() % 1'000'000'000'000 : random() % 100'000) - 5;
    });
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "round " << round;
  }
}

// Durations by candidate and by the number of its burst: 0 is the first burst after the idle operations.
Durations by_burst(std::function<std::int64_t(std::size_t candidate, std::uint32_t burst)> duration) {
  return [duration = std::move(duration), last = std::size_t{0}, bursts = std::vector<std::uint32_t>(8)](
             std::size_t, std::size_t candidate, auto) mutable {
    if (candidate != last) ++bursts[last];
    last = candidate;
    return duration(candidate, bursts[candidate]);
  };
}

TEST(Autotuner, KeepsDefault_WhenOtherIsFasterOnlySometimes) {
  Ranks ranks(1, {10, 11});
  ranks.run(by_burst([](std::size_t candidate, std::uint32_t burst) {
    return candidate == 0 ? 10'000 : burst % 2 == 1 ? 9'000 : 11'000;  // The first of seven bursts that count.
  }));
  EXPECT_LT(ranks.autotuners[0].measured_us()[1], 9.5);
  EXPECT_EQ(ranks.result(), 0U);
}

TEST(Autotuner, KeepsDefault_AfterTwoBadBursts) {
  Ranks ranks(1, {10, 11});
  ranks.run(by_burst([](std::size_t candidate, std::uint32_t burst) {
    return candidate == 1 ? 10'000 : burst == 1 || burst == 2 ? 15'000 : 9'000;
  }));
  EXPECT_EQ(ranks.result(), 0U);
}

// Operations that other ranks still run at the end of a burst delay the next candidate.
TEST(Autotuner, ToleratesRanksThatRunAhead) {
  const auto result = [](bool run_ahead) {
    Ranks ranks(2, {1, 1.1}, autotuner_options(run_ahead, false));
    std::size_t last = 0;
    std::uint32_t since = 0;
    ranks.run([&](std::size_t rank, std::size_t candidate, auto) -> std::int64_t {
      if (rank == 0) since = candidate == last ? since + 1 : 0;
      last = candidate;
      if (candidate == 0) return 1000;
      return since < 200 ? 5000 : 900;
    });
    return ranks.result();
  };
  EXPECT_EQ(result(true), 1U);
  EXPECT_EQ(result(false), 0U);
}

// Models a ring of four ranks on two cores, in which every fourth operation finds all data present. The mean of
// consecutive operations decides.
TEST(Autotuner, AveragesConsecutiveOperations_WhenCoresAreShared) {
  for (const double predicted_us : {10.0, 1000.0}) {
    const auto result = [&](std::int64_t even_ns) {
      Ranks ranks(4, {predicted_us, 1.1 * predicted_us}, autotuner_options(false, true));
      ranks.run([&](std::size_t, std::size_t candidate, std::uint32_t operation) -> std::int64_t {
        if (candidate == 0) return even_ns;
        return operation % 4 == 0 ? 7'000 : 22'000;  // 18.25 us each.
      });
      return ranks.result();
    };
    EXPECT_EQ(result(16'000), 0U) << predicted_us;
    EXPECT_EQ(result(20'000), 1U) << predicted_us;
  }
}

// Broadcasts take 0.1 us with each of eight candidates.
TEST(Autotuner, BoundsOperations_OfShortRootedCalls) {
  const AutotunerOptions terms = autotuner_options(true, true);
  Ranks ranks(2, std::vector<double>(8, 0.1), terms);
  ranks.run([](std::size_t, std::size_t candidate, auto) { return 100 + static_cast<std::int64_t>(candidate); });
  EXPECT_EQ(ranks.result(), 0U);
  EXPECT_LE(ranks.operations, 16U + 8 * 1000 + 3 * 7 * 2500);
  for (std::size_t candidate = 3; candidate < 8; ++candidate) EXPECT_EQ(ranks.times_tried(candidate), 1000U);
}

// The default continues beside the two fastest, although it seemed slowest.
TEST(Autotuner, FirstPassKeepsFastestAndDefault) {
  Ranks ranks(2, std::vector<double>(6, 0.1), autotuner_options(true, false));
  ranks.run([](std::size_t, std::size_t candidate, auto) { return 190 - 10 * static_cast<std::int64_t>(candidate); });
  EXPECT_EQ(ranks.result(), 5U);
  EXPECT_GT(ranks.times_tried(0), 1016U);
  for (std::size_t candidate = 1; candidate < 4; ++candidate) EXPECT_EQ(ranks.times_tried(candidate), 1000U);
}

TEST(Autotuner, DropsCandidatesFarBehind_InRootedCalls) {
  Ranks ranks(2, {0.1, 0.11}, autotuner_options(true, false));
  ranks.run([](std::size_t, std::size_t candidate, auto) { return candidate == 0 ? 100 : 201; });
  EXPECT_EQ(ranks.result(), 0U);
  EXPECT_EQ(ranks.operations, 16U + 2 * 1000);
}

TEST(Autotuner, SettlesOnGivenCandidate) {
  Autotuner autotuner(std::vector<double>{10, 11, 12});
  autotuner.settle(2);
  EXPECT_TRUE(autotuner.settled());
  EXPECT_EQ(autotuner.next(), 2U);
  EXPECT_FALSE(autotuner.record(1000));
  EXPECT_EQ(autotuner.next(), 2U);
}

// ---- Operations that are enqueued before earlier ones complete ----

// Stages that are derived from operation numbers equal those of operations that are timed at once.
TEST(Autotuner, IsDeterminedByOperationNumbers) {
  for (const bool rooted : {false, true}) {
    const std::vector<double> predicted = {10, 11, 12, 13};
    Autotuner autotuner(predicted, autotuner_options_for_gpus(rooted));
    while (!autotuner.settled()) {
      std::uint64_t operation = 0;
      for (bool ended = false; !ended; ++operation) {
        const Autotuner::Trial trial = autotuner.trial_at(operation);
        ASSERT_TRUE(trial.tried);
        ASSERT_EQ(trial.candidate, autotuner.next());
        ended = trial.counts ? autotuner.record(trial.candidate == 2 ? 9'000 : 10'000) : autotuner.skip();
      }
      const Autotuner::Trial later = autotuner.trial_at(operation);
      EXPECT_FALSE(later.tried || later.counts);
      EXPECT_EQ(later.candidate, 0U);
      autotuner.conclude(autotuner.measurements(), 1);
    }
    EXPECT_EQ(autotuner.next(), 2U);
    EXPECT_EQ(autotuner.measured_us()[2], 9) << "what does not count was not timed, and is not missed";
    EXPECT_EQ(autotuner.trial_at(0).candidate, 2U);
  }
}

TEST(Autotuner, CanFollowResultsOfOtherRanks) {
  const std::vector<double> predicted = {10, 11, 12};
  Autotuner first(predicted, autotuner_options_for_gpus(false)), follower = first;
  const auto run = [](Autotuner& autotuner, std::int64_t second_ns) {
    for (std::uint64_t operation = 0;; ++operation)
      if (autotuner.record(autotuner.trial_at(operation).candidate == 1 ? second_ns : 10'000)) return;
  };
  while (!first.settled()) {
    run(first, 9'000);
    run(follower, 30'000);
    EXPECT_EQ(follower.measurements().size(), first.measurements().size());
    EXPECT_LE(first.measurements().size(), Autotuner::kMaxMeasurements);
    first.conclude(first.measurements(), 1);
    follower.follow(first.outcome());
    for (std::uint64_t operation = 0; operation < 500; ++operation)
      ASSERT_EQ(follower.trial_at(operation).candidate, first.trial_at(operation).candidate);
  }
  EXPECT_TRUE(follower.settled());
  EXPECT_EQ(follower.next(), 1U);
}

// Bursts without a timed operation do not count. If a candidate has no timed burst, tuning ends.
TEST(Autotuner, IgnoresUntimedBursts) {
  const std::vector<double> predicted = {10, 11};
  for (const bool any : {true, false}) {
    Autotuner autotuner(predicted, autotuner_options_for_gpus(false));
    std::uint32_t counted = 0;
    while (!autotuner.settled()) {
      for (std::uint64_t operation = 0;; ++operation) {
        const Autotuner::Trial trial = autotuner.trial_at(operation);
        const bool timed = trial.counts && (trial.candidate == 0 || any) && ++counted % 3 != 0;
        const bool ended = timed ? autotuner.record(trial.candidate == 1 ? 9'000 : 10'000) : autotuner.skip();
        if (ended) break;
      }
      autotuner.conclude(autotuner.measurements(), 1);
    }
    EXPECT_EQ(autotuner.next(), any ? 1U : 0U);
    EXPECT_EQ(autotuner.measured_us()[0], any ? 10 : 0);
  }
}

}  // namespace
}  // namespace tutti::test
