// Autotuning of classes of calls: each class settles, and each call runs the candidate that is measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "src/communicator/autotuning/host_autotuning.h"
#include "src/communicator/planning/planning.h"

namespace tutti::test {
namespace {

constexpr ClassOfCalls kCalls = {Collective::all_gather, 30};

Candidate candidate(const char* algorithm, double predicted_us) {
  Candidate made;
  made.choice.algorithm = algorithm;
  made.predicted_us = predicted_us;
  return made;
}

// Returns a class with two candidates that use lanes. Calls on mappable buffers also have a mapped candidate with this
// predicted time.
HostAutotuning::Class class_of(double mapped_us) {
  std::vector<Candidate> all = {candidate("ring", 1), candidate("direct", 1.5)};
  HostAutotuning::Class made{TuningClass(kCalls, all, {}), {}};
  Candidate mapped = candidate("direct_mapped", mapped_us);
  mapped.choice.mapped = true;
  const auto faster = [&](const Candidate& other) { return other.predicted_us < mapped_us; };
  all.insert(std::find_if_not(all.begin(), all.end(), faster), mapped);
  made.mapped.emplace(kCalls, all, AutotunerOptions());
  return made;
}

// Runs a call of the only rank, which takes the time of its choice. Returns the choice.
using Times = std::map<std::string_view, std::int64_t>;
std::string_view run(HostAutotuning::Class& tuned, bool could_be_mapped, const Times& took_ns) {
  const bool mapped = could_be_mapped && tuned.by_mapped() != nullptr;
  const Choice& way = mapped ? *tuned.by_mapped() : tuned.through_lanes();
  const std::string_view name = way.algorithm;
  TuningClass* ended = tuned.record(mapped, took_ns.at(name));
  if (ended != nullptr) tuned.conclude(*ended, ended->autotuner.measurements(), 1);
  return name;
}

// Returns the number of calls of one kind until the class has settled, at most 5000.
int until_settled(HostAutotuning::Class& tuned, bool could_be_mapped, const Times& took_ns) {
  int calls = 0;
  for (; calls < 5000 && !tuned.settled(); ++calls) run(tuned, could_be_mapped, took_ns);
  return calls;
}

const Times kMappedWins = {{"ring", 1000}, {"direct", 1500}, {"direct_mapped", 600}};
const Times kDirectWins = {{"ring", 1500}, {"direct", 1000}, {"direct_mapped", 3000}};

TEST(TuningClass, KeepsMappedAlgorithm_WhenFaster) {
  for (const double predicted_us : {0.6, 1.2, 1.9}) {
    HostAutotuning::Class tuned = class_of(predicted_us);
    EXPECT_LT(until_settled(tuned, true, kMappedWins), 5000);
    ASSERT_NE(tuned.by_mapped(), nullptr) << predicted_us;
    EXPECT_TRUE(tuned.mapped->measured());
    EXPECT_FALSE(tuned.lanes.measured()) << "none went through lanes alone";
    EXPECT_EQ(tuned.through_lanes().algorithm, "ring") << "as predicted";
  }
}

// Lanes are faster than mapped memory. The class must settle on lanes for both kinds of calls, so that calls no longer
// compare buffers.
TEST(TuningClass, KeepsLanes_WhenFaster) {
  for (const double predicted_us : {0.8, 1.2, 1.9}) {
    HostAutotuning::Class tuned = class_of(predicted_us);
    EXPECT_LT(until_settled(tuned, true, kDirectWins), 5000);
    EXPECT_EQ(tuned.by_mapped(), nullptr) << predicted_us;
    EXPECT_EQ(tuned.through_lanes().algorithm, "direct") << predicted_us;
    EXPECT_FALSE(tuned.lanes.measured()) << "that is what mapped calls have come to";
  }
}

// Calls on mappable and on private memory alternate. Both must settle, each by its own measurements: only calls on
// mappable memory try mapped candidates.
TEST(TuningClass, SettlesBoth_WhenKindsOfCallsAlternate) {
  for (const std::uint32_t every : {2U, 3U, 40U}) {
    HostAutotuning::Class tuned = class_of(0.6);
    std::uint32_t calls = 0;
    for (; calls < 20'000 && !tuned.settled(); ++calls) run(tuned, calls % every == 0, kMappedWins);
    ASSERT_TRUE(tuned.settled()) << every;
    EXPECT_TRUE(tuned.mapped->measured() && tuned.lanes.measured()) << every;
    ASSERT_NE(tuned.by_mapped(), nullptr) << every;
    EXPECT_EQ(tuned.by_mapped()->algorithm, "direct_mapped");
    EXPECT_EQ(tuned.through_lanes().algorithm, "ring");
    EXPECT_DOUBLE_EQ(tuned.mapped->autotuner.measured_us()[0], 0.6);
    EXPECT_DOUBLE_EQ(tuned.lanes.autotuner.measured_us()[0], 1);
  }
}

// Calls of one kind stop in any phase of autotuning. The class must still settle, so that calls no longer compare
// buffers.
TEST(TuningClass, Settles_WhenOnlyOneKindOfCallRemains) {
  for (const bool mapped : {true, false}) {
    for (const int before : {0, 1, 16, 17, 18, 23}) {
      HostAutotuning::Class tuned = class_of(0.6);
      for (int i = 0; i < before; ++i) run(tuned, !mapped, kMappedWins);
      ASSERT_FALSE(tuned.settled()) << before;
      EXPECT_LT(until_settled(tuned, mapped, kMappedWins), 1500) << before;
      EXPECT_EQ(tuned.mapped->measured(), mapped) << "of a trial that has not ended";
      EXPECT_EQ(tuned.lanes.measured(), !mapped) << "of a trial that has not ended";
      ASSERT_NE(tuned.by_mapped(), nullptr) << "as predicted";
    }
  }
}

// Calls of both kinds alternate in series of 100. Calls of one kind must not end autotuning of the other.
TEST(TuningClass, DoesNotSettle_WhileTheOtherKindIsTuned) {
  HostAutotuning::Class tuned = class_of(0.6);
  for (int turn = 0; turn < 4; ++turn) {
    for (int i = 0; i < 100; ++i) run(tuned, turn % 2 == 0, kMappedWins);
    EXPECT_FALSE(tuned.mapped->autotuner.settled()) << turn;
    EXPECT_FALSE(tuned.lanes.autotuner.settled()) << turn;
  }
}

TEST(TuningClass, ReportsNoTimesOfAbandonedTrials) {
  HostAutotuning::Class tuned = class_of(0.6);
  tuned.mapped->autotuner.settle(0);
  for (int i = 0; i < 60; ++i) run(tuned, false, kMappedWins);
  ASSERT_GT(tuned.lanes.autotuner.measured_us()[0], 0) << "the test is to come to a part of it";
  EXPECT_EQ(until_settled(tuned, true, kMappedWins), 64);
  EXPECT_EQ(tuned.lanes.autotuner.measured_us(), std::vector<double>(2, 0));
}

// Three ranks measure random times in the same sequence of calls. Their choices must be the same before each call, and
// they must exchange times of the same candidates.
TEST(TuningClass, ChoosesTheSameOnAllRanks) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<HostAutotuning::Class> ranks(3, class_of(0.5 + static_cast<double>(random() % 14) / 10));
    for (auto& rank : ranks) ASSERT_TRUE(rank.mapped);
    const auto often = 1 + random() % 8;
    for (int call = 0; call < 3000 && !ranks[0].settled(); ++call) {
      const bool mapped = random() % 8 < often && ranks[0].by_mapped() != nullptr;
      for (const auto& rank : ranks) {
        ASSERT_EQ(rank.by_mapped() == nullptr, ranks[0].by_mapped() == nullptr) << round;
        ASSERT_EQ(rank.through_lanes().algorithm, ranks[0].through_lanes().algorithm) << round;
      }
      std::vector<TuningClass*> ended;
      for (auto& rank : ranks) {
        ended.push_back(rank.record(mapped, static_cast<std::int64_t>(random() % 5000)));
        ASSERT_EQ(ended.back() == nullptr, ended[0] == nullptr) << round;
      }
      if (ended[0] == nullptr) continue;
      std::vector<std::uint64_t> sums(ended[0]->autotuner.measurements().size());
      for (const TuningClass* each : ended) {
        const auto seen = each->autotuner.measurements();
        ASSERT_EQ(seen.size(), sums.size()) << "ranks speak of different trials";
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += seen[i];
      }
      for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].conclude(*ended[i], sums, 3);
    }
    for (auto& rank : ranks) ASSERT_EQ(rank.settled(), ranks[0].settled());
  }
}

// LL has a maximum length within a class of sizes, so sizes on either side must be tuned separately. Each candidate of
// a class must be possible for each call of the class.
TEST(TuningClass, HasEveryCandidateForEveryCall) {
  CommunicatorOptions options;
  options.tune = Tune::all;
  const Machine machine = machine_of(Hosts::one_host(4));
  for (std::uint32_t c = 0; c < kCollectives; ++c) {
    Problem problem;
    problem.collective = static_cast<Collective>(c);
    problem.ranks = 4;
    for (const bool grows : {true, false}) {
      HostAutotuning autotuning(options, 0, "");
      for (std::uint64_t i = 0; i < 2000; i += 4) {
        Query query = query_of(problem, (grows ? i + 4 : 2000 - i) * (i % 8 == 0 ? 1 : 16));
        query.machine = &machine;
        query.mapped = true;
        const HostAutotuning::Class& tuned = autotuning.class_of(query, candidates(query).value());
        std::vector<Candidate> all = candidates(query).value();
        if (!tuned.mapped) std::erase_if(all, [](const Candidate& candidate) { return candidate.choice.mapped; });
        const auto& tried = tuned.mapped ? tuned.mapped->candidates : tuned.lanes.candidates;
        ASSERT_EQ(tried.size(), all.size());
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
}  // namespace tutti::test
