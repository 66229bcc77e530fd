// Planning of calls: the chunks of all plans can overlap, and overlap saves time across hosts.
#include "src/communicator/planning/planning.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <tuple>

#include "src/plan/fuse.h"
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/base/case_sampling.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSlots = 4;  // Slots of lanes.

TEST(FitSlots, ShortensChunksOfARing_WhoseMessagesExceedSlots) {
  const Problem problem = {.ranks = 16, .groups = {{8, 8}}};
  const auto fitted = [&](const char* algorithm, const Problem& each, std::uint32_t slot_bytes) {
    SlotLimits limits = {.longest_units = 16, .slot_bytes = 512 << 10};
    fit_slots(emit_plans(*find(Collective::all_reduce, algorithm), each), slot_bytes, limits);
    return limits.slot_bytes;
  };
  EXPECT_EQ(fitted("host_staged", problem, 32 << 10), 512U << 10) << "16 units of 32 KiB";
  EXPECT_EQ(fitted("host_staged", problem, 16 << 10), 256U << 10) << "a message is one of 16 units";
  EXPECT_EQ(fitted("switch_staged", {.ranks = 8, .groups = {}}, 4 << 10), 512U << 10) << "there are no messages";
}

class PlannedCall : public testing::TestWithParam<cases::Entry> {};

TEST_P(PlannedCall, OverlapsChunks_InPlaceAndOutOfPlace) {
  OneOf some(7);
  for (Rank n = 2; n <= 16; ++n) {
    for (const Problem& problem : cases::problems(GetParam(), n)) {
      if (!some.takes()) continue;
      const auto proved = prove_plans(*GetParam().algorithm, problem, loop_of(true, kSlots));
      ASSERT_TRUE(proved.ok()) << describe(problem);
      EXPECT_TRUE(proved.value().overlaps) << describe(problem);
    }
  }
}

// The library does not verify plans of so many ranks before it runs them, so the number of slots must suffice.
TEST_P(PlannedCall, HasSlotsToOverlap_WithManyRanks) {
  OneOf some(7);
  for (const Rank n : {17, 23, 32, 33, 64, 100}) {
    for (const Problem& problem : cases::problems(GetParam(), n)) {
      if (!some.takes()) continue;
      const auto plans = cases::fused(emit_plans(*GetParam().algorithm, problem), cases::Fusion::whole_stages);
      const auto proof = verify(plans, loop_of(true, kSlots));
      ASSERT_TRUE(proof.ok()) << describe(problem);
      EXPECT_TRUE(suffices(proof.value(), loop_of(true, kSlots))) << describe(problem) << " K " << proof.value().slots;
    }
  }
}

// ---- Across hosts ----

const std::vector<Rank> kHosts[] = {
    {2, 2}, {3, 1}, {3, 2}, {1, 2, 3}, {2, 2, 2, 2}, {3, 3, 3, 3, 3}, {2, 2, 2, 2, 2, 2}};

Problem problem_on(Collective collective, const std::vector<Rank>& hosts) {
  const Rank ranks = std::accumulate(hosts.begin(), hosts.end(), Rank{0});
  return {.collective = collective, .ranks = ranks, .groups = {hosts}};
}

TEST(PlannedCallAcrossHosts, OverlapsChunks) {
  for (const cases::Entry& entry : cases::all_entries()) {
    if (!requires_hosts(*entry.algorithm, entry.collective)) continue;
    for (const std::vector<Rank>& hosts : kHosts) {
      const Problem problem = problem_on(entry.collective, hosts);
      if (!entry.algorithm->supports(problem)) continue;
      const auto proved = prove_plans(*entry.algorithm, problem, loop_of(true, kSlots));
      ASSERT_TRUE(proved.ok()) << cases::title(entry) << " " << describe(problem);
      EXPECT_TRUE(proved.value().overlaps) << cases::title(entry) << " " << describe(problem);
    }
  }
}

// The library does not verify plans of so many ranks before it runs them, so the number of slots must suffice.
TEST(PlannedCallAcrossHosts, HasSlotsToOverlap_WithManyRanks) {
  const std::vector<Rank> many[] = {
      {4, 4, 4, 4, 4, 4, 4, 4}, {9, 9}, {16, 16}, {5, 7, 8}, {9, 10, 11, 12}, std::vector<Rank>(16, 2),
      {3, 3, 3, 3, 3, 3, 3}};
  for (const cases::Entry& entry : cases::all_entries()) {
    if (!requires_hosts(*entry.algorithm, entry.collective)) continue;
    for (const std::vector<Rank>& hosts : many) {
      const Problem problem = problem_on(entry.collective, hosts);
      if (!entry.algorithm->supports(problem)) continue;
      if (!suits_hosts(entry.algorithm->shape(problem).units, problem)) continue;
      const auto plans = cases::fused(emit_plans(*entry.algorithm, problem), cases::Fusion::whole_stages);
      const auto proof = verify(plans, loop_of(true, kSlots));
      ASSERT_TRUE(proof.ok()) << cases::title(entry) << " " << describe(problem);
      EXPECT_TRUE(suffices(proof.value(), loop_of(true, kSlots)))
          << cases::title(entry) << " " << describe(problem) << " K " << proof.value().slots;
    }
  }
}

// Chunks go round the staging ring several times.
TEST(PlannedCallInRing, ReusesPositions_WithManyRanks) {
  const std::vector<Rank> layouts[] = {{}, {6, 6}, {8, 8, 8, 8}, std::vector<Rank>(8, 8)};
  for (const cases::Entry& entry : cases::all_entries()) {
    if (!std::string_view(entry.algorithm->name()).ends_with("_staged")) continue;
    for (const std::vector<Rank>& hosts : layouts) {
      Problem problem = problem_on(entry.collective, hosts);
      if (hosts.empty()) problem = {.collective = entry.collective, .ranks = 8, .groups = {}};
      if (!entry.algorithm->supports(problem)) continue;
      const bool over_hosts = requires_hosts(*entry.algorithm, entry.collective);
      if (over_hosts == hosts.empty()) continue;
      for (const bool in_place : {false, true}) {
        problem.in_place = in_place;
        const Loop loop = {.chunks = 16, .skew = 1, .order = StageOrder::earliest_first, .ring = over_hosts ? 6U : 4U};
        const auto proof = verify(emit_plans(*entry.algorithm, problem), loop);
        ASSERT_TRUE(proof.ok()) << cases::title(entry) << " " << describe(problem);
        EXPECT_LE(proof.value().slots, kSlots) << cases::title(entry) << " " << describe(problem);
      }
    }
  }
}

// On hosts of 1, 5, 7 and 8 ranks, a hierarchical all-reduce has 1120 units. The tuner must choose another algorithm
// unless this one is requested.
TEST(PlannedCallAcrossHosts, IgnoresHosts_WhenSizesAreTooUneven) {
  const auto ask = [](const std::vector<Rank>& hosts, std::string_view forced) {
    Query query;
    query.problem = problem_on(Collective::all_reduce, hosts);
    query.block_bytes = 1 << 24;
    query.algorithm = forced;
    query.network = true;
    query.catalogue = catalogue(Collective::all_reduce);
    const Choice choice = choose(query).value();
    const Algorithm* algorithm = find(Collective::all_reduce, choice.algorithm);
    EXPECT_TRUE(algorithm->supports(query.problem)) << choice.algorithm;
    return requires_hosts(*algorithm, Collective::all_reduce);
  };
  EXPECT_TRUE(ask({3, 1}, ""));
  EXPECT_TRUE(ask({5, 7, 8}, ""));
  EXPECT_FALSE(ask({1, 5, 7, 8}, ""));
  EXPECT_TRUE(ask({1, 5, 7, 8}, "hierarchical"));
  EXPECT_FALSE(ask({50'000, 1}, ""));  // Needs more shards than there are tags.
}

// Simulates ranks that execute a plan in a loop. A rank needs time to move a unit, and the link of its host needs more
// time if the unit leaves the host. A link transfers one message at a time. Everything else takes no time.
class Timetable {
 public:
  static constexpr double kRankTime = 1;

  Timetable(const std::vector<Plan>& plans, const Loop& loop, double link_time)
      : plans_(plans),
        loop_(loop),
        link_time_(link_time),
        ranks_(plans.size()),
        links_(plans[0].problem.groups[0].size()) {
    for (Rank host = 0; host < links_.size(); ++host)
      host_of_.insert(host_of_.end(), plans[0].problem.groups[0][host], host);
    for (Rank rank = 0; rank < plans.size(); ++rank) write_down(rank);
  }

  // Returns the time at which the last rank finishes.
  double end() {
    double last = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank rank = 0; rank < ranks_.size(); ++rank) {
        while (ranks_[rank].next < ranks_[rank].steps.size() && run_plan(rank)) moved = true;
      }
    }
    for (const OfRank& rank : ranks_) {
      EXPECT_EQ(rank.next, rank.steps.size()) << "blocked";
      last = std::max(last, rank.clock);
    }
    return last;
  }

 private:
  struct OfRank {
    std::vector<Step> steps;  // Steps of all chunks, in execution order.
    std::size_t next = 0;
    double clock = 0;
  };

  void write_down(Rank rank) {
    const Plan& plan = plans_[rank];
    const std::size_t stages = plan.shape.stages.size();
    for (std::uint32_t turn = 0; turn < loop_.chunks + loop_.skew * (stages - 1); ++turn) {
      for (std::size_t stage = 0; stage < stages; ++stage) {
        const std::uint32_t behind = loop_.skew * static_cast<std::uint32_t>(stage);
        if (turn < behind || turn - behind >= loop_.chunks) continue;
        const std::uint32_t end = stage + 1 < stages ? plan.shape.stages[stage + 1] : plan.shape.rounds;
        for (std::uint32_t i = plan.rounds[plan.shape.stages[stage]]; i < plan.rounds[end]; ++i)
          ranks_[rank].steps.push_back(plan.steps[i]);
      }
    }
  }

  bool run_plan(Rank self) {
    OfRank& rank = ranks_[self];
    const Step& step = rank.steps[rank.next];
    for (const Operand& source : step.sources) {
      if (source.space == Space::lane && lanes_[{source.peer, self, source.tag}].empty()) return false;
    }
    std::uint32_t units = 0;
    for (const Operand& source : step.sources) {
      units = source.count;
      if (source.space != Space::lane) continue;
      std::deque<double>& lane = lanes_[{source.peer, self, source.tag}];
      rank.clock = std::max(rank.clock, lane.front());
      lane.pop_front();
    }
    rank.clock += kRankTime * units;
    for (const Operand& target : step.targets) {
      if (target.space == Space::lane) lanes_[{self, target.peer, target.tag}].push_back(arrival(self, target));
    }
    ++rank.next;
    return true;
  }

  double arrival(Rank self, const Operand& target) {
    if (host_of_[self] == host_of_[target.peer]) return ranks_[self].clock;
    double& link = links_[host_of_[self]];
    return link = std::max(link, ranks_[self].clock) + link_time_ * target.count;
  }

  const std::vector<Plan>& plans_;
  const Loop loop_;
  const double link_time_;
  std::vector<OfRank> ranks_;
  std::vector<double> links_;  // [host]: time until which the link is busy.
  std::vector<Rank> host_of_;
  std::map<std::tuple<Rank, Rank, std::uint32_t>, std::deque<double>> lanes_;
};

// Links need as much time as ranks. Chunks without overlap then take twice as long as with perfect overlap.
TEST(PlannedCallAcrossHosts, KeepsLinksAndRanksBusyTogether) {
  constexpr std::uint32_t kChunks = 32;
  for (const std::vector<Rank>& hosts : {std::vector<Rank>{2, 2}, {4, 4}, {2, 2, 2}, {2, 2, 2, 2}}) {
    const Problem problem = problem_on(Collective::all_reduce, hosts);
    const auto proved = prove_plans(*find(Collective::all_reduce, "hierarchical"), problem, loop_of(true, kSlots));
    ASSERT_TRUE(proved.ok());
    const std::vector<Plan>& plans = proved.value().plans;
    const Loop overlapping = {.chunks = kChunks, .skew = loop_of(proved.value().overlaps, kSlots).skew};
    const double ranks_only = Timetable(plans, overlapping, 0).end();
    const auto k = static_cast<double>(hosts.size());
    // Makes links as busy as ranks.
    const double link_time = ranks_only / (kChunks * plans[0].shape.units * 2 * (k - 1) / k);
    const double serial = Timetable(plans, {.chunks = kChunks}, link_time).end();
    const double at_once = Timetable(plans, overlapping, link_time).end();
    EXPECT_LT(at_once, 0.7 * serial) << describe(problem);
    EXPECT_LT(at_once, 1.3 * ranks_only) << describe(problem);
  }
}

TEST(Predictions, CoverChannelsOfChoice) {
  Query query = query_of({.collective = Collective::all_reduce, .ranks = 8, .groups = {}}, 1 << 26);
  query.thread_blocks = 32;
  Choice choice = choose(query).value();
  ASSERT_GT(choice.channels, 1U);
  const double on_all = predicted_us(query, choice).value();
  choice.channels = 1;
  EXPECT_GT(predicted_us(query, choice).value(), 1.5 * on_all);
  query.thread_blocks = 0;
  choice = choose(query).value();
  const double on_host = predicted_us(query, choice).value();
  choice.channels = 8;  // A tuner plugin can make this choice.
  EXPECT_EQ(predicted_us(query, choice).value(), on_host);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, PlannedCall, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
