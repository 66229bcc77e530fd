#include "src/tuner/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/algorithms/cases.h"
#include "tests/tuner/queries.h"

namespace tutti::test {
namespace {

using test::query;

bool has(const std::vector<Candidate>& found, std::string_view algorithm, Protocol protocol) {
  return std::any_of(found.begin(), found.end(), [&](const Candidate& candidate) {
    return candidate.choice.algorithm == algorithm && candidate.choice.protocol == protocol;
  });
}

TEST(Candidates, AreAllFeasible_FastestFirst) {
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all}) {
    for (const std::uint64_t bytes : {8ULL, 4096ULL, 1ULL << 24}) {
      const Query requested = query(collective, 4, bytes);
      const std::vector<Candidate> found = candidates(requested).value();
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(choose(requested).value().algorithm, found.front().choice.algorithm);
      std::size_t possible = 0;
      for (const Algorithm* algorithm : requested.catalogue) {
        for (const Protocol protocol : {Protocol::ll, Protocol::simple, Protocol::ll128}) {
          const bool listed = has(found, algorithm->name(), protocol);
          EXPECT_EQ(ruled_out(requested, *algorithm, protocol).empty(), listed) << algorithm->name();
          possible += listed ? 1 : 0;
        }
      }
      EXPECT_EQ(possible, found.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_GT(found[i].predicted_us, 0);
        EXPECT_DOUBLE_EQ(found[i].predicted_us, found[i].parts.total_us());
        EXPECT_LE(found[i == 0 ? 0 : i - 1].predicted_us, found[i].predicted_us);
      }
    }
  }
}

TEST(Candidates, AreLimitedToForcedOnes) {
  Query requested = query(Collective::all_reduce, 4, 64);
  requested.algorithm = "ring";
  const std::vector<Candidate> rings = candidates(requested).value();
  for (const Candidate& candidate : rings) EXPECT_EQ(candidate.choice.algorithm, "ring");
  EXPECT_EQ(rings.size(), 2U);
  requested.protocol = "LL";
  EXPECT_EQ(candidates(requested).value().size(), 1U);
  requested.protocol = "LL128";
  EXPECT_FALSE(candidates(requested).ok());
  requested.protocol = "";
  requested.algorithm = "hierarchical";
  EXPECT_TRUE(candidates(requested).value().empty());
}

// The table for GPUs limits neither the number of lanes nor the use of a network.
TEST(Candidates, BeginWithChoice_OnDevices) {
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    for (const Rank ranks : {2U, 8U, 72U}) {
      for (const std::uint64_t bytes : {64ULL, 1ULL << 15, 1ULL << 20}) {
        for (const bool network : {false, true}) {
          Query requested = query(static_cast<Collective>(i), ranks, bytes);
          requested.thread_blocks = 16;
          requested.network = network;
          const Choice choice = choose(requested).value();
          const std::vector<Candidate> found = candidates(requested).value();
          ASSERT_FALSE(found.empty()) << describe(requested.problem) << " " << bytes;
          EXPECT_EQ(found.front().choice.algorithm, choice.algorithm) << describe(requested.problem) << " " << bytes;
          EXPECT_EQ(found.front().choice.protocol, choice.protocol) << describe(requested.problem) << " " << bytes;
        }
      }
    }
  }
}

TEST(Candidates, ExplainExclusions) {
  Query requested = query(Collective::all_reduce, 4, 1 << 20);
  const auto why = [&](const char* algorithm, Protocol protocol) {
    return ruled_out(requested, *find(Collective::all_reduce, algorithm), protocol);
  };
  EXPECT_EQ(why("ring", Protocol::ll), "above 560 bytes, Simple is as fast or faster");
  EXPECT_EQ(why("two_shot_mapped", Protocol::simple), "needs buffers that all ranks can access (tutti_mem_alloc)");
  EXPECT_EQ(why("hierarchical", Protocol::simple), "needs several hosts with several ranks each");
  EXPECT_EQ(why("ring", Protocol::ll128), "GPUs only");
  EXPECT_EQ(why("ring", Protocol::simple), "");
  requested.problem.groups = {{2, 2}};
  EXPECT_EQ(why("hierarchical_tree", Protocol::simple), "not measured on host memory yet");
  requested.algorithm = "hierarchical_tree";
  EXPECT_EQ(why("hierarchical_tree", Protocol::simple), "");
  requested.algorithm = "";
  requested.problem.groups.clear();
  requested.problem.ranks = 1000;
  EXPECT_EQ(why("two_shot", Protocol::simple), "would need a connection between each pair of ranks");
}

// Counts evaluations. Candidates are found without emitting plans or iterating over ranks: even for ten thousand ranks,
// only cost laws are evaluated, once for each shape.
class Counting : public Algorithm {
 public:
  explicit Counting(const Algorithm& algorithm) : algorithm_(algorithm) {}
  const char* name() const override { return algorithm_.name(); }
  const char* summary() const override { return algorithm_.summary(); }
  bool supports(const Problem& problem) const override { return algorithm_.supports(problem); }
  Shape shape(const Problem&) const override { return ++walked_, Shape(); }
  void emit(const Problem&, Rank, std::uint32_t, Steps&) const override { ++walked_; }
  CostLaw cost_law(const Problem& problem) const override { return algorithm_.cost_law(problem); }
  std::uint32_t walked() const { return walked_; }

 private:
  const Algorithm& algorithm_;
  mutable std::uint32_t walked_ = 0;
};

TEST(Candidates, AreFoundWithoutEmittingPlans) {
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    std::vector<Counting> counting;
    for (const Algorithm* algorithm : catalogue(collective)) counting.emplace_back(*algorithm);
    std::vector<const Algorithm*> counted;
    for (const Counting& algorithm : counting) counted.push_back(&algorithm);
    Query requested = query(collective, 10'000, 1 << 20);
    requested.problem.groups = {std::vector<Rank>(1250, 8)};
    requested.network = true;
    requested.catalogue = counted;
    ASSERT_TRUE(choose(requested).ok()) << choose(requested).status().message();
    for (const Counting& algorithm : counting) EXPECT_EQ(algorithm.walked(), 0U) << algorithm.name();
  }
}

// Twice the bytes never take less time, and neither do slower links.
TEST(Predictions, GrowWithBytesAndSlowerLinks) {
  for (const cases::Entry& entry : cases::flat_entries()) {
    const CostLaw cost_law = entry.algorithm->cost_law({.collective = entry.collective, .ranks = 8, .groups = {}});
    Machine slow = machine_of_devices();
    for (Level& level : slow.levels) level.rank_gbytes_per_s = level.member_gbytes_per_s = 1;
    double before = 0;
    for (double bytes = 8; bytes < 1e9; bytes *= 2) {
      const Load load = {.block_bytes = bytes, .chunk_bytes = 65536};
      const double now = predict(cost_law, load, machine_of_devices()).total_us();
      EXPECT_GE(now, before) << cases::title(entry) << " " << bytes;
      EXPECT_GE(predict(cost_law, load, slow).total_us(), now) << cases::title(entry) << " " << bytes;
      before = now;
    }
  }
}

// Links and work overlap: the longer of the two counts.
TEST(Predictions, UseMaximumOfLinksAndWork) {
  const Prediction prediction = {.launch_us = 1, .hops_us = 2, .links_us = 30, .work_us = 4};
  EXPECT_DOUBLE_EQ(prediction.total_us(), 33);
  EXPECT_DOUBLE_EQ((Prediction{.launch_us = 1, .hops_us = 2, .links_us = 3, .work_us = 40}).total_us(), 43);
}

// A ring of k chunks waits k times; messages that are all sent first are waited for once.
TEST(Predictions, ChargeEveryChunk_OfPlansInLockstep) {
  const Problem problem{.collective = Collective::all_gather, .ranks = 4, .groups = {}};
  const auto hops = [&](const char* algorithm, double chunks) {
    const Load load = {.block_bytes = 65536 * chunks, .chunk_bytes = 65536};
    return predict(find(Collective::all_gather, algorithm)->cost_law(problem), load, machine_of_hosts()).hops_us;
  };
  EXPECT_NEAR(hops("ring", 10), 10 * hops("ring", 1), 1e-9);
  EXPECT_NEAR(hops("direct", 10), hops("direct", 1), 1e-9);
}

// LL on GPUs. Work of ranks in sequence overlaps with nothing then, either.
TEST(Predictions, ChargeEveryChunk_OfLoopsWithoutOverlap) {
  const Problem problem{.collective = Collective::broadcast, .ranks = 8, .groups = {}};
  const CostLaw cost_law = find(Collective::broadcast, "binary_tree")->cost_law(problem);
  const auto predicted = [&](bool overlaps, double chunks) {
    return predict(cost_law, {.block_bytes = 65536 * chunks, .chunk_bytes = 65536, .overlaps = overlaps},
                   machine_of_devices());
  };
  EXPECT_NEAR(predicted(true, 10).hops_us, predicted(true, 1).hops_us, 1e-9);
  EXPECT_NEAR(predicted(false, 10).hops_us, 10 * predicted(true, 1).hops_us, 1e-9);
  EXPECT_NEAR(predicted(false, 10).work_us, 10 * predicted(true, 1).work_us, 1e-6);
  EXPECT_LT(predicted(true, 10).work_us, 0.9 * predicted(false, 10).work_us);
}

}  // namespace
}  // namespace tutti::test
