#include "src/plan/sequence.h"

#include <gtest/gtest.h>

#include "src/plan/plan.h"
#include "src/plan/print.h"
#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

using namespace samples;

// Emits the same step in each of its rounds.
class Fixed : public Sample {
 public:
  Fixed(Collective collective, const Shape& shape, const Step& step)
      : Sample(collective),
        shape_(shape),
        sources_(step.sources.begin(), step.sources.end()),
        targets_(step.targets.begin(), step.targets.end()),
        fold_(step.fold) {}
  Shape shape(const Problem&) const override { return shape_; }
  void emit(const Problem&, Rank, std::uint32_t, Steps& steps) const override { steps.add(sources_, targets_, fold_); }

 private:
  Shape shape_;
  std::vector<Operand> sources_, targets_;
  Fold fold_;
};

Fixed fixed(Collective collective, const Shape& shape, const Operand& source, const Operand& target) {
  return Fixed(collective, shape, {{&source, 1}, {&target, 1}, Fold::partial});
}

// Runs these stages for any problem.
class Parts : public Sequence {
 public:
  explicit Parts(Composition composition) : composition_(std::make_shared<Composition>(std::move(composition))) {}
  const char* name() const override { return "parts"; }
  const char* summary() const override { return "for tests"; }
  bool supports(const Problem&) const override { return true; }
  CostLaw cost_law(const Problem&) const override { return {}; }
  std::shared_ptr<const Composition> compose(const Problem&) const override { return composition_; }

 private:
  std::shared_ptr<const Composition> composition_;
};

Part part(const Algorithm& algorithm, Collective collective, std::vector<Rank> members,
          std::vector<std::uint32_t> cuts) {
  Part result;
  result.algorithm = &algorithm;
  result.problem = problem(collective, static_cast<Rank>(members.size()));
  result.members = std::move(members);
  result.cuts = std::move(cuts);
  return result;
}

// The only step of `self` in round 0, where the parent has 12 units in a block.
std::string translated(const Part& translated_part, Rank self) {
  const Parts parts({.units = 12, .scratch = 48, .stages = {{translated_part}}});
  const Plan plan = emit_plan(parts, problem(Collective::all_reduce, 8), self);
  EXPECT_EQ(plan.steps.size(), 1u);
  return describe(plan.steps[0], self) + " of " + std::to_string(plan.steps[0].targets[0].count);
}

const Shape kOneRound{.units = 2, .scratch = 8, .rounds = 1, .stages = {0}};

TEST(Sequence, TranslatesRanksAndTags) {
  const Fixed send = fixed(Collective::all_reduce, kOneRound, input(0, 2), lane(1, 2, 3));
  Part sub = part(send, Collective::all_reduce, {6, 2}, {1, 4, 5});
  sub.tag = 10;
  EXPECT_EQ(translated(sub, 6), "input[1..4] -> lane 2 tag 13 of 4");
}

TEST(Sequence, CutsUnevenly) {
  const Fixed copy = fixed(Collective::all_reduce, kOneRound, input(1), output(1));
  EXPECT_EQ(translated(part(copy, Collective::all_reduce, {0}, {1, 4, 11}), 0), "input[4..10] -> output[4..10] of 7");
}

TEST(Sequence, KeepsStrides_OfEvenCuts) {
  const Operand odd = strided(input(1, 2), 1, 2);
  const Operand packed = lane(1, 2);
  const Fixed send = fixed(Collective::all_to_all, kOneRound, odd, packed);
  EXPECT_EQ(translated(part(send, Collective::all_to_all, {0, 1}, {0, 3, 6, 9, 12}), 0),
            "input[3..5, +6..] (6) -> lane 1 of 6");
}

TEST(Sequence, PlacesSingleBlock_AtOwnRank) {
  const Fixed copy =
      fixed(Collective::all_gather, {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}}, input(0), output(0));
  Part sub = part(copy, Collective::all_gather, {3, 5, 7}, {0, 4, 8, 12});
  sub.input = Space::output;
  EXPECT_EQ(translated(sub, 7), "output[8..11] -> output[0..3] of 4");
}

TEST(Sequence, PlacesScratch_InWholeBlocks) {
  const Fixed copy = fixed(Collective::all_reduce, kOneRound, input(1), scratch(3));
  Part sub = part(copy, Collective::all_reduce, {0}, {1, 4, 11});
  sub.scratch = 24;
  EXPECT_EQ(translated(sub, 0),
            "input[4..10] -> scratch[40..46] of 7");  // 24, a block, and the beginning of its unit 1.
}

TEST(Sequence, KeepsComplete_WhenPartCompletesParent) {
  const Operand sources[] = {input(0), lane(1, 1)};
  const Operand target = output(0);
  const Fixed fold(Collective::all_reduce, kOneRound, {sources, {&target, 1}, Fold::complete});
  for (const Fold kind : {Fold::partial, Fold::complete}) {
    Part sub = part(fold, Collective::all_reduce, {0, 1}, {0, 6, 12});
    sub.fold = kind;
    const Parts parts({.units = 12, .scratch = 48, .stages = {{sub}}});
    EXPECT_EQ(emit_plan(parts, problem(Collective::all_reduce, 8), 0).steps[0].fold, kind);
  }
}

TEST(Sequence, KeepsStages_OnWhichAllPartsAgree) {
  const Fixed two =
      fixed(Collective::all_reduce, {.units = 1, .scratch = 0, .rounds = 3, .stages = {0, 1}}, input(0), output(0));
  const Fixed one =
      fixed(Collective::all_reduce, {.units = 1, .scratch = 0, .rounds = 5, .stages = {0}}, input(0), output(0));
  const Part agreeing = part(two, Collective::all_reduce, {0}, {0, 6});
  const Part other = part(one, Collective::all_reduce, {1}, {6, 12});
  const Parts parts({.units = 12, .scratch = 0, .stages = {{agreeing, agreeing}, {agreeing, other}}});
  const Shape shape = parts.shape(problem(Collective::all_reduce, 2));
  EXPECT_EQ(shape.rounds, 8u);
  EXPECT_EQ(shape.stages, (std::vector<std::uint32_t>{0, 1, 3}));
}

TEST(Sequence, AdvancesPartsTogether_AndIdlesWhenDone) {
  const Fixed longer =
      fixed(Collective::all_reduce, {.units = 1, .scratch = 0, .rounds = 2, .stages = {0}}, input(0), output(0));
  const Fixed shorter =
      fixed(Collective::all_reduce, {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}}, input(0), output(0));
  const Parts parts({.units = 12,
                     .scratch = 0,
                     .stages = {{part(longer, Collective::all_reduce, {0}, {0, 6}),
                                 part(shorter, Collective::all_reduce, {0}, {6, 12})}}});
  const Plan plan = emit_plan(parts, problem(Collective::all_reduce, 1), 0);
  EXPECT_EQ(plan.rounds, (std::vector<std::uint32_t>{0, 2, 3}));
}

}  // namespace
}  // namespace tutti::test
