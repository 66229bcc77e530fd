// DeviceAutotuning with scripted durations: the result on which ranks agree, and the call from which they use it.
#include <algorithm>
#include <random>
#include <set>

#include "tests/communicator/device/scripted_autotuner.h"

namespace tutti::test {
namespace {

constexpr int kEnough = 600;

void run(ScriptedRanks& ranks, int calls) {
  for (int i = 0; i < calls; ++i)
    for (Rank rank = 0; rank < ranks.size(); ++rank) ranks.make(rank);
}

std::size_t result(ScriptedRanks& ranks) {
  EXPECT_TRUE(ranks.class_at(0).settled());
  return ranks[0].candidates.back();
}

TEST(DeviceAutotuners, KeepFastest_WhicheverWasPredictedFirst) {
  for (std::size_t fastest = 0; fastest < 3; ++fastest) {
    std::vector<double> takes_us = {10, 10, 10};
    takes_us[fastest] = 8;
    ScriptedRanks ranks({takes_us, takes_us});
    run(ranks, kEnough);
    ranks.expect_alike();
    EXPECT_EQ(result(ranks), fastest);
  }
}

// Ranks measure different times, and the sum decides. A decision by the times of rank 0 would select the other
// candidate.
TEST(DeviceAutotuners, SumTimesOfAllRanks) {
  ScriptedRanks slower({{10, 9}, {10, 14}});
  run(slower, kEnough);
  EXPECT_EQ(result(slower), 0U) << "rank 0 alone would take the other";
  ScriptedRanks faster({{10, 11}, {16, 10}});
  run(faster, kEnough);
  EXPECT_EQ(result(faster), 1U) << "rank 0 alone would keep the first";
}

TEST(DeviceAutotuners, BeginAfterSomeCalls) {
  ScriptedRanks ranks({{10, 9}, {10, 9}});
  run(ranks, DeviceAutotuning::kIdle);
  EXPECT_EQ(ranks.timers, 0);
  EXPECT_EQ(std::set<std::size_t>(ranks[0].candidates.begin(), ranks[0].candidates.end()).size(), 1U);
}

// One candidate takes ten times as long as the best. It may run only in the first pass, at most 17 times.
TEST(DeviceAutotuners, DropCandidatesFarBehind) {
  ScriptedRanks ranks({{10, 90, 9}, {10, 90, 9}});
  run(ranks, kEnough);
  const auto& went = ranks[1].candidates;
  EXPECT_LE(std::count(went.begin(), went.end(), 1U), 17);
  EXPECT_EQ(result(ranks), 2U);
}

// Ranks make calls in random order, up to 500 calls ahead of each other, and do not time some of the calls. All must
// use the result from the same call on.
TEST(DeviceAutotuners, Agree_WhenRanksRunAhead) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    const Rank count = 2 + static_cast<Rank>(random() % 3);
    std::vector<std::vector<double>> takes_us(count);
    for (auto& own : takes_us)
      for (int i = 0; i < 3; ++i) own.push_back(8 + static_cast<double>(random() % 8));
    ScriptedRanks ranks(takes_us);
    const std::uint64_t ahead = 1 + random() % 500, untimed = random() % 8;
    for (;;) {
      std::uint64_t min = ~std::uint64_t{0};
      for (Rank rank = 0; rank < count; ++rank) min = std::min(min, ranks[rank].calls);
      if (min >= 4 * kEnough) break;
      const auto rank = static_cast<Rank>(random() % count);
      for (std::uint64_t burst = random() % ahead + 1; burst > 0 && ranks[rank].calls < min + ahead; --burst)
        ranks.make(rank, random() % 16 >= untimed);
    }
    run(ranks, 1200);
    ASSERT_NO_FATAL_FAILURE(ranks.expect_alike());
    for (Rank rank = 0; rank < count; ++rank) EXPECT_TRUE(ranks.class_at(rank).settled());
  }
}

// Rank 1 stops calling, or times no call. The other rank must not wait for its times, and all keep the predicted choice
// (candidate 0), although candidate 1 is faster.
TEST(DeviceAutotuners, GiveUp_WithoutTimesOfARank) {
  ScriptedRanks dead({{10, 5}, {10, 5}});
  run(dead, 60);
  for (int i = 0; i < kEnough; ++i) dead.make(0);
  EXPECT_FALSE(dead.class_at(0).settled());
  EXPECT_EQ(dead[0].candidates.back(), 0U);
  ScriptedRanks silent({{10, 5}, {10, 5}});
  for (int i = 0; i < kEnough; ++i) {
    silent.make(0);
    silent.make(1, false);
  }
  silent.expect_alike();
  EXPECT_EQ(result(silent), 0U);
  EXPECT_FALSE(silent.class_at(0).tuning.measured());
}

// Rank 0 decides on a group of three calls, which then fails. These decisions must be discarded, or ranks would count
// calls differently.
TEST(DeviceAutotuners, IgnoreFailedCalls) {
  for (const double first_us : {10, 30}) {
    const std::vector<double> takes_us = {first_us, 9, 9.5};
    ScriptedRanks ranks({takes_us, takes_us});
    for (int i = 0; i < kEnough; ++i) {
      ranks.make(1);
      const Call refused[3] = {};
      for (const Call& call : refused) ranks[0].autotuning->assign(ranks.class_at(0), call);
      ranks[0].autotuning->cancel();
      ranks.make(0);
    }
    ranks.expect_alike();
    EXPECT_EQ(result(ranks), 1U);
  }
}

TEST(DeviceAutotuners, AreLimitedInNumber) {
  ScriptedRanks ranks({{10, 9}, {10, 9}});
  std::uint64_t bytes = 1;
  for (std::uint32_t i = 0; i < kMaxAutotunerCells; ++i, bytes *= 2)
    for (Rank rank = 0; rank < ranks.size(); ++rank) EXPECT_FALSE(ranks.class_at(rank, bytes).settled());
  for (Rank rank = 0; rank < ranks.size(); ++rank) {
    const DeviceAutotuning::Class& none = ranks.class_at(rank, bytes);
    EXPECT_TRUE(none.settled());
    EXPECT_FALSE(none.tuning.measured());
    EXPECT_EQ(none.tuning.autotuner.next(), 0U);
  }
  std::vector<std::size_t> first;
  for (int i = 0; i < kEnough; ++i)
    for (Rank rank = 0; rank < ranks.size(); ++rank) ranks.make(rank, true, 1);
  EXPECT_EQ(ranks[0].candidates.back(), 1U);
}

// Ranks make calls of one class in groups of 7, so that ranks switch to the result within a group. All must switch at
// the same call.
TEST(DeviceAutotuners, SwitchWithinGroup) {
  ScriptedRanks ranks({{10, 9}, {10, 9}});
  constexpr std::size_t kGroup = 7;
  for (int i = 0; i < kEnough; i += kGroup) {
    Call group[kGroup];
    for (Rank rank = 0; rank < ranks.size(); ++rank) {
      DeviceAutotuning& autotuning = *ranks[rank].autotuning;
      for (const Call& call : group) autotuning.assign(ranks.class_at(rank), call);
      for (const Call& call : group) {
        ranks[rank].candidates.push_back(autotuning.assignment_of(call)->candidate);
        ranks[rank].takes_ns = autotuning.assignment_of(call)->candidate == 0 ? 10'000 : 9'000;
        EXPECT_TRUE(autotuning.start_timing(call, nullptr).ok());
        autotuning.note_made(call);
        EXPECT_TRUE(autotuning.end_timing(nullptr).ok());
      }
    }
  }
  ranks.expect_alike();
  EXPECT_EQ(result(ranks), 1U);
}

}  // namespace
}  // namespace tutti::test
