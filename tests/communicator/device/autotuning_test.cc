// Autotuning of calls on devices. Results stay correct, all ranks switch at the same call, and no enqueue waits for
// another rank.
#include "src/communicator/autotuning/device_autotuning.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "src/communicator/autotuning/machine_name.h"
#include "tests/communicator/device/own_calls.h"
#include "tests/communicator/device/tuned_calls.h"

namespace tutti::test {
namespace {

constexpr Rank kRanks = 2;
constexpr std::uint64_t kCount = 40;

class DeviceAutotuningTest : public OnDevices {
 protected:
  // Returns how many calls a rank may enqueue before another rank begins. The queue of the CUDA driver limits it.
  int far_ahead() { return dynamic_cast<HostDevice*>(&rig_->device()) != nullptr ? 300 : 60; }
};

// Orders of calls that one thread makes.
class DeviceAutotuningOrderTest : public DeviceAutotuningTest {
 protected:
  void SetUp() override {
    if (kFindsRaces) GTEST_SKIP() << "takes minutes in ThreadSanitizer's build; other builds run it";
    DeviceAutotuningTest::SetUp();
  }
};

// Calls after which a class has settled: 16 without timing, 17 for each of 8 candidates, and at most 7 * 12 for each of
// 4 candidates. Some more calls follow until all ranks have switched.
constexpr int kEnough = 600;
constexpr int kEnoughOfARoot = 2200;  // 16 + 8 * 32 + 3 * 7 * 80, and some.

void expect_tuned(const TunedCalls& calls) {
  calls.expect_alike();
  EXPECT_EQ(calls.error(), "");
  const auto& ways = calls.ways(0);
  EXPECT_EQ(distinct({ways.begin(), ways.begin() + DeviceAutotuning::kIdle}).size(), 1U);
  EXPECT_GT(distinct(ways).size(), 1U);
  EXPECT_EQ(distinct({ways.end() - 50, ways.end()}).size(), 1U);
}

TEST_P(DeviceAutotuningTest, SettlesOnOneChoiceOnAllRanks) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  OneOf sample(3);
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::broadcast}) {
    if (!sample.takes()) continue;
    TunedCalls calls(ranks, {.collective = collective});
    calls.run(collective == Collective::broadcast ? kEnoughOfARoot : kEnough);
    expect_tuned(calls);
  }
}

// All ranks are on one device and can map each other's memory. Mapped and other algorithms must be tried.
TEST_P(DeviceAutotuningOrderTest, TriesMappedAlgorithms) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {.collective = Collective::all_gather, .count = 100'000});
  calls.run(100);
  calls.expect_alike();
  EXPECT_EQ(calls.error(), "");
  const auto tried = distinct(calls.ways(0));
  EXPECT_TRUE(tried.contains("direct_mapped ")) << "it is predicted to be the best";
  EXPECT_TRUE(std::any_of(tried.begin(), tried.end(), [](const auto& way) { return !way.ends_with(' '); }));
}

// One rank enqueues many calls before the other begins, and ranks alternate in being first. An enqueue that waits for
// the other rank would deadlock.
TEST_P(DeviceAutotuningOrderTest, Settles_WhenRanksRunFarAheadInTurns) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {});
  OneOf sample(3);
  for (int turn = 0; turn < 12; ++turn) {
    if (!sample.takes()) continue;
    const Rank first = turn % 2;
    calls.enqueue_of(first, far_ahead());
    calls.enqueue_of(1 - first, far_ahead());
    ASSERT_FALSE(HasFatalFailure());
    if (turn > 2 || far_ahead() < 300) ranks.synchronize();
  }
  ranks.synchronize();
  calls.run(kEnough);
  expect_tuned(calls);
}

TEST_P(DeviceAutotuningOrderTest, Settles_WhenRanksRunAheadRandomly) {
  std::mt19937_64 random(kSeed);
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {});
  std::array<int, kRanks> made = {};
  while (made[0] < 1000 || made[1] < 1000) {
    const auto rank = static_cast<Rank>(random() % kRanks);
    if (made[rank] > made[1 - rank] + far_ahead()) continue;
    const int times = std::min(static_cast<int>(random() % 60), 1000 - made[rank]);
    calls.enqueue_of(rank, times);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << kSeed;
    made[rank] += times;
  }
  ranks.synchronize();
  calls.run(kEnough);
  expect_tuned(calls);
}

TEST_P(DeviceAutotuningTest, Settles_WithOneThreadPerRank) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {.collective = Collective::all_gather});
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int i = 0; i < 12; ++i) {
        calls.enqueue_of(rank, 60);
        EXPECT_TRUE(rig_->synchronize(ranks.stream(rank)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ranks.synchronize();
  calls.run(kEnough);
  expect_tuned(calls);
}

// One thread runs both ranks. Rank 0 enqueues the calls of the first communicator first, rank 1 those of the second. An
// enqueue that waits for the other rank would deadlock.
TEST_P(DeviceAutotuningOrderTest, Settles_WhenCommunicatorsAreEnqueuedInOppositeOrders) {
  DeviceRanks some(*rig_, kRanks, autotuning(Tune::exact)), others(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls first(some, {}), second(others, {.collective = Collective::all_gather});
  for (int turn = 0; turn < 4; ++turn) {
    first.enqueue_of(0, far_ahead() / 2);
    second.enqueue_of(0, far_ahead() / 2);
    second.enqueue_of(1, far_ahead() / 2);
    first.enqueue_of(1, far_ahead() / 2);
    ASSERT_FALSE(HasFatalFailure());
    some.synchronize();
    others.synchronize();
  }
  first.run(kEnough);
  second.run(kEnough);
  expect_tuned(first);
  expect_tuned(second);
}

// Each group has a call of both ranks, so that one launch runs both.
TEST_P(DeviceAutotuningTest, Settles_ForCallsInGroups) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  std::vector<std::string> ways;
  Problem problem;
  problem.ranks = kRanks;
  for (int i = 0; i < kEnough; ++i) {
    ASSERT_EQ(run_collective(ranks, 0, {problem, kCount, 0}), "");
    ways.push_back(way_of(ranks[0]));
    ASSERT_EQ(ways.back(), way_of(ranks[1])) << "call " << i;
  }
  EXPECT_GT(distinct(ways).size(), 1U);
  EXPECT_EQ(distinct({ways.end() - 50, ways.end()}).size(), 1U);
}

// Rank 0 enqueues calls of two shapes in groups of 7; rank 1 enqueues the same calls one by one. Both must use the same
// choice for each call.
TEST_P(DeviceAutotuningOrderTest, Settles_WhenOnlyOneRankUsesGroups) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather}) {
    TunedCalls one(ranks, {.collective = collective}), other(ranks, {.collective = collective, .count = kCount + 1});
    for (int i = 0; i < 100; ++i) {
      std::vector<DeviceCall> group;
      for (int k = 0; k < 7; ++k) group.push_back(k % 3 == 1 ? other.call(0) : one.call(0));
      ASSERT_TRUE(enqueue(group).ok());
      for (int k = 0; k < 7; ++k) (k % 3 == 1 ? other : one).enqueue_of(1, 1);
      if (i % 3 == 0) ranks.synchronize();
      ASSERT_TRUE(ranks[0].failure().ok()) << ranks[0].failure().message();
    }
    ranks.synchronize();
    EXPECT_EQ(one.error() + other.error(), "");
    EXPECT_GT(distinct(one.ways(1)).size(), 1U);
    one.enqueue_of(0, 1);
    one.enqueue_of(1, 1);
    EXPECT_EQ(one.ways(0).back(), one.ways(1).back());
    ranks.synchronize();
  }
}

// Before every 10 calls, a group fails because a buffer is misaligned. Its calls must not count, or ranks would switch
// at different calls.
TEST_P(DeviceAutotuningTest, IgnoresFailedCalls) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {});
  for (int i = 0; i < kEnough / 10; ++i) {
    std::vector<DeviceCall> group = {calls.call(0), calls.call(1)};
    group[1].call.output += 1;
    ASSERT_FALSE(enqueue(group).ok()) << "it is not aligned";
    calls.run(10);
  }
  expect_tuned(calls);
}

// Rank 0 captures 5 calls in a graph, while rank 1 makes them without a graph. Both must count these calls, or ranks
// would switch at different calls. A graph keeps the plans that it captured.
TEST_P(DeviceAutotuningTest, CountsCapturedCalls) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {});
  std::vector<std::unique_ptr<DeviceGraph>> graphs;
  for (int turn = 0; turn < 9; ++turn) {
    calls.run(80);
    ASSERT_TRUE(rig_->begin_capture(ranks.stream(0)).ok());
    calls.enqueue_of(0, 5);
    auto graph = rig_->end_capture(ranks.stream(0));
    ASSERT_TRUE(graph.ok());
    graphs.push_back(std::move(graph).value());
    calls.enqueue_of(1, 5);
    ASSERT_TRUE(graphs.back()->replay(ranks.stream(0)).ok());
    ranks.synchronize();
    ASSERT_FALSE(HasFatalFailure());
  }
  expect_tuned(calls);
}

// Exact mode must not try other candidates for float reductions. No mode may try any if an algorithm or a tuner plugin
// is requested, or if autotuning is off.
TEST_P(DeviceAutotuningTest, LeavesExcludedCallsAlone) {
  const auto ways_of = [&](CommunicatorOptions options, DataType type) {
    options.update_agreement_hash();
    DeviceRanks ranks(*rig_, kRanks, options);
    TunedCalls calls(ranks, {.type = type});
    calls.run(100);
    calls.expect_alike();
    return distinct(calls.ways(0)).size();
  };
  EXPECT_GT(ways_of(autotuning(Tune::exact), DataType::int32), 1U);
  EXPECT_GT(ways_of(autotuning(Tune::all), DataType::float32), 1U);
  EXPECT_EQ(ways_of(autotuning(Tune::exact), DataType::float32), 1U) << "floats are rounded";
  EXPECT_EQ(ways_of(autotuning(Tune::off), DataType::int32), 1U) << "as TUTTI_DETERMINISTIC=1 says, too";
  CommunicatorOptions forced = autotuning(Tune::all), advised = forced;
  forced.algorithm = "ring";
  EXPECT_EQ(ways_of(forced, DataType::int32), 1U);
  advised.tuner_plugin = "none-of-this-name";
  EXPECT_EQ(ways_of(advised, DataType::int32), 1U);
}

// Creates more classes than kMaxAutotunerCells. A class beyond the limit must keep the predicted choice. The first
// class must still be autotuned.
TEST_P(DeviceAutotuningTest, LeavesClassesBeyondLimitAlone) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls first(ranks, {});
  first.run(1);
  std::uint32_t classes = 1;
  for (const Collective collective : {Collective::all_gather, Collective::all_to_all, Collective::reduce_scatter}) {
    for (std::uint64_t count = 2; count < 5000; count *= 2, ++classes)
      TunedCalls(ranks, {.collective = collective, .count = count}).run(1);
  }
  ASSERT_GT(classes, kMaxAutotunerCells);
  TunedCalls last(ranks, {.count = 10 * kCount});
  last.run(100);
  last.expect_alike();
  EXPECT_EQ(last.error(), "");
  EXPECT_EQ(distinct(last.ways(0)).size(), 1U);
  first.run(100);
  first.expect_alike();
  EXPECT_GT(distinct(first.ways(0)).size(), 1U);
}

class DeviceTuneFileTest : public DeviceAutotuningTest {
 protected:
  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("tutti-devices-" + std::to_string(::getpid()))).string();
  void TearDown() override { std::filesystem::remove(file_); }

  std::vector<std::string> ways(int times) {
    DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact, file_));
    TunedCalls calls(ranks, {});
    calls.run(times);
    calls.expect_alike();
    end(ranks);
    return calls.ways(0);
  }

  static void end(DeviceRanks& ranks) {
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] { EXPECT_TRUE(ranks[rank].finalize().ok()); });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(DeviceTuneFileTest, SavesResult) {
  const std::string kept = ways(kEnough).back();
  const TuneCache cache = read_tune_cache(file_).value();
  ASSERT_EQ(cache.machines.size(), 1U);
  const TuneCache::Machine& machine = cache.machines.front();
  const auto named = parse_machine_name(machine.name);
  ASSERT_TRUE(named.has_value()) << machine.name;
  EXPECT_TRUE(named->on_devices) << machine.name << ": not to be taken for host memory";
  EXPECT_EQ(named->ranks, kRanks);
  EXPECT_EQ(named->links, "unknown") << "ranks of one process do not look for their topology";
  ASSERT_EQ(machine.classes.size(), 1U);
  const auto& candidates = machine.classes.front().candidates;
  EXPECT_EQ(kept, candidates.front().algorithm + " " + name(candidates.front().protocol));
  const auto measured = std::count_if(candidates.begin(), candidates.end(),
                                      [](const TunedCandidate& one) { return one.measured_us > 0; });
  EXPECT_GT(measured, 1);
  EXPECT_GT(candidates.front().measured_us, 0);
}

// Each group has calls of two communicators, and the time of one includes the other. Such times must not be saved.
TEST_P(DeviceTuneFileTest, SavesNoTimes_OfCallsInMixedGroups) {
  DeviceRanks some(*rig_, kRanks, autotuning(Tune::exact, file_)), others(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls first(some, {}), second(others, {.collective = Collective::all_gather});
  std::set<std::string> tried;
  for (int i = 0; i < kEnough; ++i) {
    const std::vector<DeviceCall> group = {first.call(0), second.call(0), first.call(1), second.call(1)};
    ASSERT_TRUE(enqueue(group).ok());
    some.synchronize();
    others.synchronize();
    ASSERT_EQ(way_of(some[0]), way_of(some[1])) << "call " << i;
    tried.insert(way_of(some[0]));
  }
  EXPECT_GT(tried.size(), 1U);
  end(some);
  EXPECT_FALSE(std::filesystem::exists(file_)) << "there is nothing to keep";
}

// Swaps the first and the last candidate in the tune file. Calls must use the new first candidate and leave the file
// unchanged.
TEST_P(DeviceTuneFileTest, OverridesPrediction) {
  const std::string kept = ways(kEnough).back();
  TuneCache cache = read_tune_cache(file_).value();
  auto& candidates = cache.machines.at(0).classes.at(0).candidates;
  ASSERT_GT(candidates.size(), 1U);
  std::swap(candidates.front(), candidates.back());
  ASSERT_TRUE(add_to_tune_cache(file_, cache.machines[0]).ok());
  const TunedCandidate& first = candidates.front();
  const bool mapped = first.algorithm.ends_with("_mapped");  // Such calls report no protocol.
  const std::string wanted = first.algorithm + " " + (mapped ? "" : name(first.protocol));
  EXPECT_NE(wanted, kept);
  const auto all = ways(50);
  EXPECT_EQ(distinct(all), std::set<std::string>{wanted});
  EXPECT_EQ(read_tune_cache(file_).value(), cache) << "nothing new was learned";
}

// Rank 0 enqueues 100 calls that rank 1 does not make, then aborts. Ranks are destroyed while timed calls are in flight
// and times of rank 1 are missing.
TEST_P(DeviceAutotuningTest, EndsDuringAutotuning) {
  DeviceRanks ranks(*rig_, kRanks, autotuning(Tune::exact));
  TunedCalls calls(ranks, {});
  calls.run(20);
  calls.enqueue_of(0, 100);
  ranks[0].abort();
  EXPECT_FALSE(ranks[1].failure().ok());
  const DeviceCall late = calls.call(1);
  EXPECT_FALSE(enqueue({&late, 1}).ok());
}

// A group fails at rank 1 after rank 0 has created an autotuning class. The class must be discarded, or the classes of
// the ranks would differ.
TEST_P(DeviceAutotuningOrderTest, DiscardsClass_WhenFirstCallFails) {
  CommunicatorOptions options = autotuning(Tune::exact);
  options.timeout_ms = 20'000;  // Ranks that choose different algorithms wait for each other.
  DeviceRanks ranks(*rig_, kRanks, options);
  TunedCalls late(ranks, {}), early(ranks, {.collective = Collective::all_gather});
  std::vector<DeviceCall> group = {late.call(0), late.call(1)};
  group[1].call.output += 1;
  ASSERT_FALSE(enqueue(group).ok());
  ASSERT_TRUE(ranks[0].failure().ok() && ranks[1].failure().ok());
  for (int round = 0; round < 60; ++round) {
    early.run(20);
    late.run(20);
    ASSERT_TRUE(ranks[0].failure().ok()) << "round " << round << ": " << ranks[0].failure().message();
    ASSERT_EQ(late.ways(0), late.ways(1)) << "round " << round;
    ASSERT_EQ(early.ways(0), early.ways(1)) << "round " << round;
    ASSERT_EQ(late.error() + early.error(), "");
  }
  EXPECT_GT(distinct(late.ways(0)).size(), 1U);
  EXPECT_EQ(distinct({late.ways(0).end() - 50, late.ways(0).end()}).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceAutotuningTest, testing::ValuesIn(device_kinds()), kind_of);
INSTANTIATE_TEST_SUITE_P(All, DeviceAutotuningOrderTest, testing::ValuesIn(device_kinds()), kind_of);
INSTANTIATE_TEST_SUITE_P(All, DeviceTuneFileTest, testing::ValuesIn(device_kinds()), kind_of);

}  // namespace
}  // namespace tutti::test
