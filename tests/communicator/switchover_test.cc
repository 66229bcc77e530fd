// Ranks that change over together without waiting: every order of their steps, and threads that run as they like.
#include "src/communicator/control/switchover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "src/base/atomic.h"

namespace tutti {
namespace {

constexpr Rank kRanks = 3;
constexpr std::uint8_t kOperations = 4;
constexpr std::uint8_t kOffers = 2;
constexpr std::uint16_t kOutcome = 0x1234;

enum class Deciding : std::uint8_t { idle, offered, all_before, some_there, confirmed };

// Each rank shows an operation, then looks, and so on. Rank 0 is the decider too: between its operations it may offer,
// then see where the ranks are, then confirm or call off.
struct Course {
  std::uint64_t word = 0;
  std::array<std::uint64_t, kRanks> shown = {};
  std::array<std::uint8_t, kRanks> done = {};    // Operations.
  std::array<std::uint8_t, kRanks> showed = {};  // 1: the next one, and has not looked yet.
  std::array<std::uint8_t, kRanks> first = {};   // Operation that went by the outcome; 0: none yet.
  std::uint8_t offers = 0;
  Deciding deciding = Deciding::idle;
  std::uint64_t from = 0;
  auto operator<=>(const Course&) const = default;

  Switchover view() { return {&word, {&shown[0], &shown[1], &shown[2]}}; }
};

class EveryOrder {
 public:
  std::size_t ends = 0, together = 0, called_off = 0, lost = 0;

  void follow(const Course& course) {
    if (!seen_.insert(course).second || testing::Test::HasFatalFailure()) return;
    bool moved = false;
    for (Rank rank = 0; rank < kRanks; ++rank) moved = step(course, rank) || moved;
    moved = decide(course) || moved;
    if (!moved) judge(course);
  }

 private:
  bool step(Course course, Rank rank) {
    const bool decides = course.deciding != Deciding::idle && course.deciding != Deciding::confirmed;
    if (course.done[rank] == kOperations || (rank == 0 && decides)) return false;
    const std::uint64_t number = course.done[rank] + 1;
    if (course.showed[rank] == 0) {
      (void)course.view().show(rank, number);
      course.showed[rank] = 1;
    } else {
      const auto shown = course.view().show(rank, number);  // As it has: nobody sees it again.
      const auto decision = course.first[rank] != 0 ? std::nullopt : course.view().look(shown, 1);
      if (decision) course.first[rank] = static_cast<std::uint8_t>(number);
      course.showed[rank] = 0;
      ++course.done[rank];
    }
    follow(course);
    return true;
  }

  bool decide(Course course) {
    const Switchover view = course.view();
    const Switchover::Decision offered = {1, kOutcome, course.from};
    switch (course.deciding) {
      case Deciding::confirmed: return false;
      case Deciding::idle:
        if (course.showed[0] != 0 || course.offers == kOffers) return false;
        course.from = view.offer(1, kOutcome, 1 + course.offers++).from;
        course.deciding = Deciding::offered;
        break;
      case Deciding::offered:
        course.deciding = view.has_come_to(offered) ? Deciding::some_there : Deciding::all_before;
        break;
      case Deciding::all_before:
        course.deciding = view.confirm(offered) ? Deciding::confirmed : Deciding::idle;
        lost += course.deciding == Deciding::idle ? 1 : 0;
        break;
      case Deciding::some_there:
        view.call_off(offered);
        course.deciding = Deciding::idle;
        ++called_off;
        break;
    }
    follow(course);
    return true;
  }

  void judge(const Course& course) {
    ++ends;
    const bool holds = course.deciding == Deciding::confirmed && course.from <= kOperations;
    together += holds ? 1 : 0;
    for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(course.first[rank], holds ? course.from : 0) << rank;
  }

  std::set<Course> seen_;
};

TEST(Switchover, IsAtOneOperationInEveryOrderOfSteps) {
  EveryOrder all;
  all.follow({});
  EXPECT_GT(all.ends, 10U);
  EXPECT_GT(all.together, 0U);
  EXPECT_GT(all.called_off, 0U) << "the decider saw that somebody was there";
  EXPECT_GT(all.lost, 0U) << "somebody who was there called it off";
}

TEST(Switchover, HoldsFromTheMarginBehindTheFurthest) {
  std::uint64_t word = 0, shown[2] = {};
  const Switchover view(&word, {&shown[0], &shown[1]});
  EXPECT_FALSE(view.arrive(0, 1, 1));
  EXPECT_FALSE(view.arrive(1, 9, 1));
  ASSERT_TRUE(view.propose(1, 7, 4));
  EXPECT_FALSE(view.arrive(0, 12, 1));
  EXPECT_EQ(view.arrive(0, 13, 1), (Switchover::Decision{1, 7, 13}));
  EXPECT_FALSE(view.arrive(0, 14, 2)) << "the next turn has not been decided";
  EXPECT_EQ(view.arrive(1, 1'000, 1), (Switchover::Decision{1, 7, 13}));
}

// Threads that never wait for a decision, over many turns, close to each other: each notes which operation was its
// first by each.
void change_over_in_threads() {
  constexpr std::uint32_t kTurns = 60;
  constexpr std::uint64_t kMost = 1'000'000, kAhead = 3;
  alignas(64) std::uint64_t words[kRanks + 1][8] = {};
  const Switchover view(&words[kRanks][0], {&words[0][0], &words[1][0], &words[2][0]});
  std::vector<std::vector<std::uint64_t>> first(kRanks), named(kRanks);
  std::array<std::atomic<std::uint32_t>, kRanks> adopted = {};  // Turns.
  const auto all_have = [&](std::uint32_t turns) {
    return std::all_of(adopted.begin(), adopted.end(), [&](const auto& own) { return own >= turns; });
  };
  const auto hindmost = [&] {
    std::uint64_t least = kMost;
    for (Rank rank = 0; rank < kRanks; ++rank) least = std::min(least, load_acquire(&words[rank][0]));
    return least;
  };
  const auto run = [&](Rank self) {
    bool confirmed = false;
    for (std::uint64_t number = 1; number < kMost && !all_have(kTurns); ++number) {
      while (number > hindmost() + kAhead) std::this_thread::yield();
      const std::uint32_t turn = adopted[self] + 1;
      if (turn > kTurns) {
        (void)view.show(self, number);
        continue;
      }
      const auto decision = view.arrive(self, number, turn);
      if (decision) {
        first[self].push_back(number);
        named[self].push_back(decision->from);
        confirmed = false;
        adopted[self] = turn;
      } else if (self == 0 && !confirmed && all_have(turn - 1)) {
        confirmed = view.propose(turn, kOutcome, 1);
      }
    }
    (void)view.show(self, kMost);
  };
  std::vector<std::thread> threads;
  for (Rank self = 0; self < kRanks; ++self) threads.emplace_back(run, self);
  for (std::thread& thread : threads) thread.join();
  for (Rank self = 0; self < kRanks; ++self) {
    ASSERT_EQ(first[self], named[self]) << "rank " << self << " went as before where it should not have, or vice versa";
    ASSERT_EQ(first[self], first[0]) << "rank " << self;
    ASSERT_EQ(first[self].size(), kTurns) << "rank " << self;
  }
}

TEST(Switchover, IsAtOneOperationOfThreadsThatRunAsTheyLike) {
  for (int i = 0; i < 5 && !HasFatalFailure(); ++i) change_over_in_threads();
}

}  // namespace
}  // namespace tutti
