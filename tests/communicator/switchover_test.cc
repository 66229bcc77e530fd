// Ranks that switch at the same operation without waiting: all interleavings of their steps, and threads with arbitrary
// timing.
#include "src/communicator/autotuning/switchover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "src/base/atomic.h"

namespace tutti::test {
namespace {

constexpr Rank kRanks = 3;
constexpr std::uint8_t kOperations = 4;
constexpr std::uint8_t kOffers = 2;
constexpr std::uint16_t kOutcome = 0x1234;

// State of a run. Each rank publishes its operation, then reads the decision, and repeats. Rank 0 also decides: between
// its operations it may make a proposal, read the position of each rank, and confirm or cancel. Each access to words of
// another rank is one step.
struct Course {
  std::uint64_t word = 0;
  std::array<std::uint64_t, kRanks> shown = {};
  std::array<std::uint8_t, kRanks> done = {};   // Number of operations.
  std::array<std::uint8_t, kRanks> first = {};  // First operation that used the outcome; 0: none yet.
  std::array<std::optional<Switchover::Arrival>, kRanks> arrivals = {};
  std::optional<Switchover::Proposal> proposal;
  std::uint8_t offers = 0;
  std::uint64_t from = 0;  // Operation from which the confirmed decision holds.

  Switchover view() { return {&word, {&shown[0], &shown[1], &shown[2]}}; }

  // Returns the part of the state that determines all later steps.
  std::vector<std::uint64_t> key() const {
    std::vector<std::uint64_t> all = {word, offers, from};
    all.insert(all.end(), shown.begin(), shown.end());
    for (Rank rank = 0; rank < kRanks; ++rank) {
      const auto& arrival = arrivals[rank];
      const std::uint64_t unconfirmed = arrival && arrival->unconfirmed ? arrival->unconfirmed->from : 0;
      all.insert(all.end(), {done[rank], first[rank], arrival.has_value(), unconfirmed});
    }
    if (proposal) all.insert(all.end(), {proposal->offered.from, proposal->made, proposal->looked_at, proposal->late});
    return all;
  }
};

class EveryOrder {
 public:
  std::size_t ends = 0, together = 0, called_off = 0, lost = 0, too_late = 0;

  void follow(const Course& course) {
    if (!seen_.insert(course.key()).second || testing::Test::HasFatalFailure()) return;
    bool moved = false;
    for (Rank rank = 0; rank < kRanks; ++rank) moved = step(course, rank) || moved;
    moved = decide(course) || moved;
    if (!moved) judge(course);
  }

 private:
  bool step(Course course, Rank rank) {
    std::optional<Switchover::Arrival>& arrival = course.arrivals[rank];
    if (course.done[rank] == kOperations || (rank == 0 && course.proposal)) return false;
    const std::uint64_t number = course.done[rank] + 1;
    if (!arrival) {
      arrival = course.view().show(rank, number, 1);
      if (course.first[rank] != 0) end(course, rank);
    } else {
      const bool calls_off = arrival->unconfirmed.has_value();
      const bool last = course.view().step(*arrival);
      too_late += calls_off && !last ? 1 : 0;
      if (last) end(course, rank);
    }
    follow(course);
    return true;
  }

  static void end(Course& course, Rank rank) {
    ++course.done[rank];
    if (course.arrivals[rank]->follows) course.first[rank] = course.done[rank];
    course.arrivals[rank].reset();
  }

  bool decide(Course course) {
    const Switchover view = course.view();
    if (course.from != 0) return false;
    if (!course.proposal) {
      if (course.arrivals[0] || course.offers == kOffers) return false;
      course.proposal = view.prepare(1, kOutcome, 1 + course.offers++);
    } else if (view.step(*course.proposal)) {
      if (course.proposal->confirmed) course.from = course.proposal->offered.from;
      else ++(course.proposal->late ? called_off : lost);
      course.proposal.reset();
    }
    follow(course);
    return true;
  }

  void judge(const Course& course) {
    ++ends;
    const bool holds = course.from != 0 && course.from <= kOperations;
    together += holds ? 1 : 0;
    for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(course.first[rank], holds ? course.from : 0) << rank;
  }

  std::set<std::vector<std::uint64_t>> seen_;
};

TEST(Switchover, TakesEffectAtOneOperation_InEveryOrderOfSteps) {
  EveryOrder all;
  all.follow({});
  EXPECT_GT(all.ends, 10U);
  EXPECT_GT(all.together, 0U);
  EXPECT_GT(all.called_off, 0U) << "the decider saw that somebody was there";
  EXPECT_GT(all.lost, 0U) << "somebody who was there called it off";
  EXPECT_GT(all.too_late, 0U) << "somebody who was there would have called it off, and found it confirmed";
}

TEST(Switchover, TakesEffectAfterMargin_BehindFurthestRank) {
  std::uint64_t word = 0, shown[2] = {};
  const Switchover view(&word, {&shown[0], &shown[1]});
  EXPECT_FALSE(view.arrive(0, 1, 1));
  EXPECT_FALSE(view.arrive(1, 9, 1));
  ASSERT_TRUE(view.propose(1, 7, 4));
  EXPECT_FALSE(view.arrive(0, 12, 1));
  EXPECT_EQ(view.arrive(0, 13, 1), (Switchover::Decision{1, 7, 13}));
  EXPECT_FALSE(view.arrive(0, 14, 2)) << "decision 2 has not been offered";
  EXPECT_EQ(view.arrive(1, 1'000, 1), (Switchover::Decision{1, 7, 13}));
}

// A rank whose calls fail publishes smaller numbers again. Rank 0 must not propose an operation that a rank may have
// canceled before.
TEST(Switchover, NeverProposesNumberTwice) {
  std::uint64_t word = 0, shown[2] = {};
  const Switchover view(&word, {&shown[0], &shown[1]});
  EXPECT_FALSE(view.arrive(1, 9, 1));
  Switchover::Proposal offer = view.prepare(1, 7, 1);
  EXPECT_EQ(offer.offered.from, 10U);
  EXPECT_FALSE(view.step(offer)) << "made, but no rank was examined";
  EXPECT_FALSE(view.arrive(1, 10, 1)) << "it calls the offer off";
  EXPECT_FALSE(view.arrive(1, 3, 1));
  EXPECT_EQ(view.prepare(1, 7, 1).offered.from, 11U);
  ASSERT_TRUE(view.propose(1, 7, 1));
  EXPECT_FALSE(view.arrive(1, 10, 1));
  EXPECT_EQ(view.arrive(1, 12, 1), (Switchover::Decision{1, 7, 11}));
  EXPECT_EQ(view.prepare(2, 7, 1).offered.from, 13U) << "other decisions are other words";
}

// A decider and a rank run concurrently, 200'000 times. Each publishes a value, then reads that of the other. Detects a
// missing memory fence, by which neither sees the other and only one of them switches.
TEST(Switchover, LetsOneOfTwoSeeTheOther) {
  constexpr int kTimes = 200'000;
  struct alignas(64) Own {
    std::uint64_t word = 0;
    bool changes_over = false;
  };
  struct Meeting {
    Own shown[2], decision;
  };
  std::vector<Meeting> meetings(kTimes);
  std::atomic<int> come[2] = {};
  const auto run = [&](int self) {
    for (int i = 0; i < kTimes; ++i) {
      auto& [shown, decision] = meetings[i];
      const Switchover view(&decision.word, {&shown[0].word, &shown[1].word});
      if (i % 8 == 0) come[self] = i + 1;
      for (int tries = 0; come[1 - self] <= i - i % 8; ++tries)
        if (tries > 1000) std::this_thread::yield();
      for (int late = (self == 0 ? i / 128 : i / 8) % 16; late > 0; --late) (void)come[self].load();
      if (self != 0) {
        shown[1].changes_over = view.arrive(1, 1, 1).has_value();
        continue;
      }
      Switchover::Proposal proposal = view.prepare(1, kOutcome, 1);
      while (!view.step(proposal)) continue;
      shown[0].changes_over = proposal.confirmed && proposal.offered.from == 1;
    }
  };
  std::thread decider(run, 0), rank(run, 1);
  decider.join();
  rank.join();
  for (int i = 0; i < kTimes; ++i)
    ASSERT_EQ(meetings[i].shown[0].changes_over, meetings[i].shown[1].changes_over) << "time " << i;
}

// Runs threads that never wait for a decision and stay within a few operations of each other, over many decisions.
// Expects that each thread switches at the operation of the decision.
void change_over_in_threads() {
  constexpr std::uint32_t kDecisions = 60;
  constexpr std::uint64_t kMax = 1'000'000, kAhead = 3;
  alignas(64) std::uint64_t words[kRanks + 1][8] = {};
  const Switchover view(&words[kRanks][0], {&words[0][0], &words[1][0], &words[2][0]});
  std::vector<std::vector<std::uint64_t>> first(kRanks), named(kRanks);
  std::array<std::atomic<std::uint32_t>, kRanks> adopted = {};  // Number of decisions.
  const auto all_have = [&](std::uint32_t decisions) {
    return std::all_of(adopted.begin(), adopted.end(), [&](const auto& own) { return own >= decisions; });
  };
  const auto hindmost = [&] {
    std::uint64_t min = kMax;
    for (Rank rank = 0; rank < kRanks; ++rank) min = std::min(min, load_acquire(&words[rank][0]));
    return min;
  };
  const auto run = [&](Rank self) {
    bool confirmed = false;
    for (std::uint64_t number = 1; number < kMax && !all_have(kDecisions); ++number) {
      while (number > hindmost() + kAhead) std::this_thread::yield();
      const std::uint32_t index = adopted[self] + 1;
      if (index > kDecisions) {
        (void)view.show(self, number, index);
        continue;
      }
      const auto decision = view.arrive(self, number, index);
      if (decision) {
        first[self].push_back(number);
        named[self].push_back(decision->from);
        confirmed = false;
        adopted[self] = index;
      } else if (self == 0 && !confirmed && all_have(index - 1)) {
        confirmed = view.propose(index, kOutcome, 1);
      }
    }
    (void)view.show(self, kMax, kDecisions + 1);
  };
  std::vector<std::thread> threads;
  for (Rank self = 0; self < kRanks; ++self) threads.emplace_back(run, self);
  for (std::thread& thread : threads) thread.join();
  for (Rank self = 0; self < kRanks; ++self) {
    ASSERT_EQ(first[self], named[self]) << "rank " << self << " went as before where it should not have, or vice versa";
    ASSERT_EQ(first[self], first[0]) << "rank " << self;
    ASSERT_EQ(first[self].size(), kDecisions) << "rank " << self;
  }
}

TEST(Switchover, TakesEffectAtOneOperation_OfFreelyRunningThreads) {
  for (int i = 0; i < 5 && !HasFatalFailure(); ++i) change_over_in_threads();
}

}  // namespace
}  // namespace tutti::test
