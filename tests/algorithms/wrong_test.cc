// Plausible algorithms that are wrong: verifier and referee must both say so, the verifier for the right reason.
#include "algorithms/ranges.h"
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/plan/referee.h"

namespace tutti::test {
namespace {

constexpr Rank kRanks = 4;

class Wrong : public Algorithm {
 public:
  const char* name() const override { return "wrong"; }
  const char* summary() const override { return "for tests"; }
  bool supports(const Problem&) const override { return true; }
  CostLaw cost_law(const Problem&) const override { return {}; }
};

// An algorithm of the catalogue on a problem that it refuses.
class Forced : public Wrong {
 public:
  Forced(Collective collective, const char* name) : algorithm_(*find(collective, name)) {}
  Shape shape(const Problem& problem) const override { return algorithm_.shape(problem); }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    algorithm_.emit(problem, self, round, steps);
  }

 private:
  const Algorithm& algorithm_;
};

// What `verify` says; checks that the referee disapproves in some schedule.
std::string complaint_about(const Algorithm& algorithm, Collective collective, bool in_place) {
  const std::vector<Plan> plans =
      emit_plans(algorithm, {.collective = collective, .ranks = kRanks, .in_place = in_place, .groups = {}});
  bool seen_wrong = false;
  for (std::uint64_t seed = 0; seed < 100 && !seen_wrong; ++seed) {
    seen_wrong = !referee_run(plans, {.slots = 4}, seed).ok;
  }
  EXPECT_TRUE(seen_wrong) << "right in all schedules";
  return verify(plans).status().message();
}

bool says(const std::string& complaint, const char* word) { return complaint.find(word) != std::string::npos; }

TEST(WrongAlgorithms, PairwiseAllToAllInPlace) {
  const Forced pairwise(Collective::all_to_all, "pairwise");
  const std::string complaint = complaint_about(pairwise, Collective::all_to_all, true);
  EXPECT_TRUE(says(complaint, "missing")) << complaint;
}

TEST(WrongAlgorithms, MappedAllToAllInPlace) {
  const Forced mapped(Collective::all_to_all, "direct_mapped");
  const std::string complaint = complaint_about(mapped, Collective::all_to_all, true);
  EXPECT_TRUE(says(complaint, "rac")) << complaint;
}

class OneShotOwnInputFirst : public Wrong {
 public:
  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    std::vector<Operand> sources{input(0)};
    for (Rank i = 1; i < problem.ranks; ++i) {
      steps.send(input(0), (self + i) % problem.ranks);
      sources.push_back(lane((self + i) % problem.ranks, 1));
    }
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }
};

TEST(WrongAlgorithms, OneShotThatFoldsItsOwnInputFirst) {
  const std::string complaint = complaint_about(OneShotOwnInputFirst(), Collective::all_reduce, false);
  EXPECT_TRUE(says(complaint, "bits")) << complaint;
}

// Everybody reads everybody's input and writes its own output.
class OneShotPull : public Wrong {
 public:
  explicit OneShotPull(bool exits) : exits_(exits) {}
  Shape shape(const Problem&) const override { return {.rounds = 3, .stages = {0}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const std::vector<Operand> flags = flags_of_peers(self, problem.ranks);
    if (round == 0) steps.add({}, flags);
    if (round == 2 && exits_) steps.add({}, flags), steps.add(flags, {});
    if (round != 1) return;
    std::vector<Operand> sources = flags;
    for (Rank rank = 0; rank < problem.ranks; ++rank) sources.push_back(at(rank, input(0)));
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }

 private:
  bool exits_;
};

TEST(WrongAlgorithms, OneShotPullWithoutExitFlags) {
  for (const bool in_place : {false, true}) {
    const std::string complaint = complaint_about(OneShotPull(false), Collective::all_reduce, in_place);
    EXPECT_TRUE(says(complaint, "rac")) << complaint;
  }
}

TEST(WrongAlgorithms, OneShotPullInPlaceEvenWithExitFlags) {
  const std::string complaint = complaint_about(OneShotPull(true), Collective::all_reduce, true);
  EXPECT_TRUE(says(complaint, "rac")) << complaint;
  const std::vector<Plan> out_of_place = emit_plans(OneShotPull(true), {.ranks = kRanks, .groups = {}});
  EXPECT_EQ(verify(out_of_place).status().message(), "");
}

// Reads output where input should be read first.
class RingOverOutput : public Wrong {
 public:
  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .rounds = 2 * (problem.ranks - 1), .stages = {0}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const Rank leaving = (self + 2 * n - round) % n, arriving = (leaving + n - 1) % n;
    const Rank next = (self + 1) % n, previous = (self + n - 1) % n;
    steps.send(output(leaving), next);
    if (round + 1 >= n) steps.recv(previous, output(arriving));
    else steps.reduce(previous, input(arriving), output(arriving), round + 2 == n ? Fold::complete : Fold::partial);
  }
};

TEST(WrongAlgorithms, RingAsOneLoopOverTheOutput) {
  const std::string complaint = complaint_about(RingOverOutput(), Collective::all_reduce, false);
  EXPECT_TRUE(says(complaint, "unwritten")) << complaint;
}

}  // namespace
}  // namespace tutti::test
