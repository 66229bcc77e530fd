// Steps that access memory of all ranks at once.
#include <gtest/gtest.h>

#include "src/plan/print.h"
#include "src/plan/rank_mapping.h"
#include "src/plan/verify.h"
#include "tests/plan/reference_interpreter.h"
#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

using namespace samples;

// Defects of an all-reduce by switches.
enum class Defect {
  none,
  late_entry_wait,
  late_exit_wait,
  two_folders,
  own_twice,
  unmarked,
  explicit_fold,
  beside_input
};

// Each rank folds its unit of the scratch of all ranks, and stores the result to all.
class SwitchAllReduce : public Sample {
 public:
  explicit SwitchAllReduce(Defect defect = Defect::none) : Sample(Collective::all_reduce), defect_(defect) {}
  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = 2 * problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    std::vector<Operand> flags;
    for (Rank rank = 0; rank < n; ++rank)
      if (rank != self) flags.push_back(flag(rank));
    if (round == 0) steps.copy(input(0, n), scratch(0, n));
    if (round == 0 && defect_ == Defect::own_twice && self == 1) steps.fold({scratch(0), input(0)}, {scratch(0)});
    if (round == 0) steps.add({}, flags);
    if (round == 1) {
      if (defect_ != Defect::late_entry_wait) steps.add(flags, {});
      fold(n, self, steps);
      if (defect_ == Defect::late_entry_wait) steps.add(flags, {});
      steps.add({}, flags);
    }
    if (round != 2) return;
    if (defect_ != Defect::late_exit_wait) steps.add(flags, {});
    const bool again = self == 1 && (defect_ == Defect::two_folders || defect_ == Defect::explicit_fold);
    steps.copy(scratch(again ? n + 1 : n, again ? n - 1 : n), output(again ? 1 : 0, again ? n - 1 : n));
    if (defect_ == Defect::late_exit_wait) steps.add(flags, {});
  }

 private:
  void fold(Rank n, Rank self, Steps& steps) const {
    if (defect_ == Defect::beside_input) return steps.fold({all(scratch(self)), input(self)}, {all(scratch(n + self))});
    steps.fold({all(scratch(self))}, {all(scratch(n + self))},
               defect_ == Defect::unmarked ? Fold::partial : Fold::complete);
    if (self != 1) return;
    if (defect_ == Defect::two_folders) steps.fold({all(scratch(0))}, {output(0)}, Fold::complete);
    if (defect_ != Defect::explicit_fold) return;
    std::vector<Operand> sources;
    for (Rank rank = 0; rank < n; ++rank) sources.push_back(at(rank, scratch(0)));
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }

  const Defect defect_;
};

constexpr Loop kLoop = {.chunks = 9, .skew = 1, .order = StageOrder::earliest_first, .ring = 3};

std::string failure(Defect defect, Rank ranks = 4, const Loop& loop = kLoop) {
  return verify(emit_plans(SwitchAllReduce(defect), problem(Collective::all_reduce, ranks)), loop).status().message();
}

TEST(AllRanks, PlansAreProvedAndComputeCorrectResults) {
  for (Rank ranks = 2; ranks <= 16; ++ranks) {
    EXPECT_EQ(failure(Defect::none, ranks), "");
    const std::vector<Plan> plans = emit_plans(SwitchAllReduce(), problem(Collective::all_reduce, ranks, true));
    for (std::uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(run_reference(plans, kLoop, seed).text, "") << seed;
  }
  EXPECT_NE(failure(Defect::none, 4, {.chunks = 9, .skew = 1, .order = StageOrder::earliest_first, .ring = 2}), "")
      << "a rank stores into scratch that others still read";
}

TEST(AllRanks, RacesAreFoundInTheMemoryOfEveryRank) {
  EXPECT_NE(failure(Defect::late_entry_wait).find("race: its read of scratch["), std::string::npos)
      << failure(Defect::late_entry_wait);
  const std::string late = failure(Defect::late_exit_wait);
  EXPECT_TRUE(late.find("race: ") != std::string::npos || late.find("unwritten: ") != std::string::npos) << late;
}

TEST(AllRanks, EveryContributionCountsOnce) {
  EXPECT_NE(failure(Defect::own_twice).find("marked complete, but holds a sum of 5"), std::string::npos)
      << failure(Defect::own_twice);
  EXPECT_NE(failure(Defect::unmarked).find("no fold of it is marked complete"), std::string::npos)
      << failure(Defect::unmarked);
}

// The order of additions may differ between two folds of a switch, and from any other fold.
TEST(AllRanks, OnlyOneRankMayFoldAUnit) {
  for (const Defect defect : {Defect::two_folders, Defect::explicit_fold}) {
    const std::string error = failure(defect);
    EXPECT_NE(error.find(": the additions have another order"), std::string::npos) << error;
  }
}

TEST(AllRanks, StepHasOneSourceAndOneTarget) {
  EXPECT_NE(failure(Defect::beside_input).find("accesses memory of all ranks beside other sources or targets"),
            std::string::npos);
}

// Defects of an all-reduce by switches in the buffers of the ranks.
enum class BufferDefect { none, late_entry_wait, no_exit_flags, stored_to_input, folded_outputs, moved, outside };

class MappedSwitchAllReduce : public Sample {
 public:
  explicit MappedSwitchAllReduce(BufferDefect defect) : Sample(Collective::all_reduce), defect_(defect) {}
  Shape shape(const Problem& problem) const override { return {.units = problem.ranks, .rounds = 3, .stages = {0}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    std::vector<Operand> flags;
    for (Rank rank = 0; rank < n; ++rank)
      if (rank != self) flags.push_back(flag(rank));
    if (round == 0 && defect_ == BufferDefect::folded_outputs) steps.copy(input(0, n), output(0, n));
    if (round == 0) steps.add({}, flags);
    if (round == 2 && defect_ != BufferDefect::no_exit_flags) steps.add(flags, {});
    if (round != 1) return;
    if (defect_ != BufferDefect::late_entry_wait) steps.add(flags, {});
    const std::uint32_t unit = self + (defect_ == BufferDefect::outside ? n : 0);
    const std::uint32_t to = defect_ == BufferDefect::moved ? (self + 1) % n : unit;
    const Operand source = defect_ == BufferDefect::folded_outputs ? output(unit) : input(unit);
    steps.fold({all(source)}, {all(defect_ == BufferDefect::stored_to_input ? input(to) : output(to))}, Fold::complete);
    if (defect_ == BufferDefect::late_entry_wait) steps.add(flags, {});
    if (defect_ != BufferDefect::no_exit_flags) steps.add({}, flags);
  }

 private:
  const BufferDefect defect_;
};

std::string failure(BufferDefect defect, bool in_place, Rank ranks = 4) {
  const std::vector<Plan> plans =
      emit_plans(MappedSwitchAllReduce(defect), problem(Collective::all_reduce, ranks, in_place));
  return verify(plans, {.chunks = 3}).status().message();
}

TEST(AllRanks, BuffersAreProved) {
  for (const bool in_place : {false, true}) {
    for (Rank ranks = 2; ranks <= 16; ++ranks) EXPECT_EQ(failure(BufferDefect::none, in_place, ranks), "");
    const auto expect = [&](BufferDefect defect, const char* error) {
      EXPECT_NE(failure(defect, in_place).find(error), std::string::npos) << failure(defect, in_place);
    };
    expect(BufferDefect::late_entry_wait, "race: ");
    expect(BufferDefect::no_exit_flags, "missing: no step has written it");
    expect(BufferDefect::stored_to_input, "writes the caller's input");
    expect(BufferDefect::folded_outputs, "folds the outputs of all ranks");
    expect(BufferDefect::moved, "its operands differ in length");
    expect(BufferDefect::outside, "input[4] of all ranks lies outside of its 4 units");
  }
}

TEST(AllRanks, ArePrintedMappedAndExpanded) {
  Plan plan = emit_plan(SwitchAllReduce(), problem(Collective::all_reduce, 3), 1);
  EXPECT_NE(print(plan).find("scratch[1] of all ranks -> scratch[4] of all ranks (complete)"), std::string::npos);
  RankMapping mapping;
  mapping.order = {2, 0, 1};
  EXPECT_NE(print(mapped_plan(mapping, plan.problem, plan)).find("scratch[1] of all ranks"), std::string::npos);
  expand_all_ranks(plan);
  EXPECT_NE(print(plan).find("scratch[1] of rank 0 + scratch[1] + scratch[1] of rank 2 -> "
                             "scratch[4] of rank 0, scratch[4], scratch[4] of rank 2 (complete)"),
            std::string::npos)
      << print(plan);
}

// Every rank adds what the ranks of its host have, and takes that for the result.
class SumsOfHosts : public Sample {
 public:
  explicit SumsOfHosts(Fold fold) : Sample(Collective::all_reduce), fold_(fold) {}
  Shape shape(const Problem&) const override { return {.scratch = 1, .rounds = 2, .stages = {0, 1}}; }
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const RankRange host = owners_of(all_of_host(scratch(0)), problem, self);
    std::vector<Operand> flags;
    for (Rank rank = host.first; rank < host.end; ++rank)
      if (rank != self) flags.push_back(flag(rank));
    if (round == 0) steps.copy(input(0), scratch(0));
    steps.add(round == 0 ? std::vector<Operand>() : flags, round == 0 ? flags : std::vector<Operand>());
    if (round == 1) steps.fold({all_of_host(scratch(0))}, {output(0)}, fold_);
  }

 private:
  const Fold fold_;
};

Problem on_two_hosts() {
  Problem five = problem(Collective::all_reduce, 5);
  five.groups = {{2, 3}};
  return five;
}

TEST(AllOfHost, AreTheRanksOfOneHost) {
  const auto error = [](Fold fold) { return verify(emit_plans(SumsOfHosts(fold), on_two_hosts())).status().message(); };
  EXPECT_NE(error(Fold::complete).find("marked complete, but holds a sum of "), std::string::npos)
      << error(Fold::complete);
  EXPECT_NE(error(Fold::partial).find("contribution is not included"), std::string::npos) << error(Fold::partial);
}

class SendsToAllRanks : public Sample {
 public:
  SendsToAllRanks() : Sample(Collective::all_reduce) {}
  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }
  void emit(const Problem&, Rank, std::uint32_t, Steps& steps) const override { steps.send(input(0), kAllRanks); }
};

TEST(AllRanks, AreNoPeerOfALane) {
  const std::string error =
      verify(emit_plans(SendsToAllRanks(), problem(Collective::all_reduce, 2))).status().message();
  EXPECT_NE(error.find("names a rank that does not exist"), std::string::npos) << error;
}

TEST(AllOfHost, ArePrintedMappedAndExpanded) {
  Plan plan = emit_plan(SumsOfHosts(Fold::partial), on_two_hosts(), 3);
  const std::string printed = "scratch[0] of all ranks of the host -> output[0]";
  EXPECT_NE(print(plan).find(printed), std::string::npos) << print(plan);
  RankMapping mapping;
  mapping.order = {2, 0, 1, 4, 3};
  EXPECT_NE(print(mapped_plan(mapping, plan.problem, plan)).find(printed), std::string::npos);
  expand_all_ranks(plan);
  EXPECT_NE(print(plan).find("scratch[0] of rank 2 + scratch[0] + scratch[0] of rank 4 -> output[0]"),
            std::string::npos)
      << print(plan);
}

}  // namespace
}  // namespace tutti::test
