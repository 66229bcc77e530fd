// Plausible but wrong algorithms: verifier and reference interpreter must both reject them, the verifier for the right
// reason.
#include "algorithms/ranges.h"
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/plan/reference_interpreter.h"

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

// Runs an algorithm of the catalogue on a problem that it does not support.
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

// Returns the error of `verify`. Checks that the reference interpreter finds wrong results in some schedule.
std::string error_of(const Algorithm& algorithm, Collective collective, bool in_place) {
  const std::vector<Plan> plans =
      emit_plans(algorithm, {.collective = collective, .ranks = kRanks, .in_place = in_place, .groups = {}});
  bool seen_wrong = false;
  for (std::uint64_t seed = 0; seed < 100 && !seen_wrong; ++seed) {
    seen_wrong = !run_reference(plans, {.slots = 4}, seed).ok;
  }
  EXPECT_TRUE(seen_wrong) << "right in all schedules";
  return verify(plans).status().message();
}

bool mentions(const std::string& error, const char* word) { return error.find(word) != std::string::npos; }

TEST(WrongAlgorithm, IsRejected_PairwiseAllToAllInPlace) {
  const Forced pairwise(Collective::all_to_all, "pairwise");
  const std::string error = error_of(pairwise, Collective::all_to_all, true);
  EXPECT_TRUE(mentions(error, "missing")) << error;
}

TEST(WrongAlgorithm, IsRejected_MappedAllToAllInPlace) {
  const Forced mapped(Collective::all_to_all, "direct_mapped");
  const std::string error = error_of(mapped, Collective::all_to_all, true);
  EXPECT_TRUE(mentions(error, "rac")) << error;
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

TEST(WrongAlgorithm, IsRejected_OneShotFoldingOwnInputFirst) {
  const std::string error = error_of(OneShotOwnInputFirst(), Collective::all_reduce, false);
  EXPECT_TRUE(mentions(error, "bits")) << error;
}

// All ranks read the inputs of all ranks and write their own outputs.
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

TEST(WrongAlgorithm, IsRejected_OneShotPullWithoutExitFlags) {
  for (const bool in_place : {false, true}) {
    const std::string error = error_of(OneShotPull(false), Collective::all_reduce, in_place);
    EXPECT_TRUE(mentions(error, "rac")) << error;
  }
}

TEST(WrongAlgorithm, IsRejected_OneShotPullInPlaceWithExitFlags) {
  const std::string error = error_of(OneShotPull(true), Collective::all_reduce, true);
  EXPECT_TRUE(mentions(error, "rac")) << error;
  const std::vector<Plan> out_of_place = emit_plans(OneShotPull(true), {.ranks = kRanks, .groups = {}});
  EXPECT_EQ(verify(out_of_place).status().message(), "");
}

// Reads the output where the input should be read first.
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

TEST(WrongAlgorithm, IsRejected_RingAsOneLoopOverOutput) {
  const std::string error = error_of(RingOverOutput(), Collective::all_reduce, false);
  EXPECT_TRUE(mentions(error, "unwritten")) << error;
}

}  // namespace
}  // namespace tutti::test
