#include "tests/plan/reference_interpreter.h"

#include <gtest/gtest.h>

#include "src/plan/fuse.h"
#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

using namespace samples;

const RingReduceScatter kRingReduceScatter;
const RingAllGather kRingAllGather;
const DirectReduceScatter kDirectReduceScatter;
const DirectAllGather kDirectAllGather;
const AllReduce kRing(kRingReduceScatter, kRingAllGather, 1);
const AllReduce kTwoShot(kDirectReduceScatter, kDirectAllGather, 1);
const TreeBroadcast kTree;
const MappedAllReduce kMapped;
const StagedAllReduce kStaged;

std::string first_error(std::span<const Plan> plans, const Loop& loop = {}) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const ReferenceResult result = run_reference(plans, loop, seed);
    if (!result.ok) return "seed " + std::to_string(seed) + ": " + result.text;
  }
  return "";
}

// A copy of a plan with only the steps that `keeps` selects.
template <typename Keeps>
Plan without(const Plan& plan, Keeps keeps) {
  Plan result{.problem = plan.problem, .shape = plan.shape, .steps = Steps(plan.steps.self()), .rounds = {0}};
  for (std::uint32_t round = 0; round < plan.shape.rounds; ++round) {
    for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i) {
      const Step step = plan.steps[i];
      std::vector<Operand> sources, targets;
      for (const Operand& operand : step.sources) sources.push_back(at(operand.peer, operand));
      for (const Operand& operand : step.targets) targets.push_back(at(operand.peer, operand));
      if (keeps(round, i)) result.steps.add(sources, targets, step.fold);
    }
    result.rounds.push_back(static_cast<std::uint32_t>(result.steps.size()));
  }
  return result;
}

TEST(ReferenceInterpreter, AcceptsSamples_WithEveryLoop) {
  const Loop loops[] = {{},
                        {.chunks = 3, .slots = 2},
                        {.chunks = 4, .skew = 1, .slots = 2},
                        {.chunks = 4, .skew = 2, .order = StageOrder::earliest_first, .slots = 4},
                        {.chunks = 2, .slots = 6, .longest = 3}};
  for (const Loop& loop : loops) {
    for (const bool in_place : {false, true}) {
      for (const Rank n : {1, 2, 3, 5, 8}) {
        EXPECT_EQ(first_error(emit_plans(kRing, problem(Collective::all_reduce, n, in_place)), loop), "");
        EXPECT_EQ(first_error(emit_plans(kTwoShot, problem(Collective::all_reduce, n, in_place)), loop), "");
        EXPECT_EQ(first_error(emit_plans(kTree, problem(Collective::broadcast, n, in_place)), loop), "");
        EXPECT_EQ(first_error(emit_plans(kMapped, problem(Collective::all_reduce, n, in_place))), "");
      }
    }
  }
}

TEST(ReferenceInterpreter, DetectsEveryMissingStep) {
  const std::vector<Plan> plans = emit_plans(kRing, problem(Collective::all_reduce, 4));
  for (std::uint32_t victim = 0; victim < plans[1].steps.size(); ++victim) {
    std::vector<Plan> wrong = plans;
    wrong[1] = without(plans[1], [&](std::uint32_t, std::uint32_t step) { return step != victim; });
    EXPECT_NE(first_error(wrong), "") << "without step " << victim;
  }
}

TEST(ReferenceInterpreter, DetectsMissingEntryAndExitFlags) {
  for (const bool in_place : {false, true}) {
    for (const std::uint32_t flags : {0, 2}) {
      std::vector<Plan> wrong = emit_plans(kMapped, problem(Collective::all_reduce, 4, in_place));
      for (Plan& plan : wrong) plan = without(plan, [&](std::uint32_t round, std::uint32_t) { return round != flags; });
      EXPECT_NE(first_error(wrong), "") << "without the flags of round " << flags;
    }
  }
}

TEST(ReferenceInterpreter, DetectsScratchReusedTooEarly) {
  for (const StageOrder order : {StageOrder::latest_first, StageOrder::earliest_first}) {
    const std::uint32_t enough = order == StageOrder::latest_first ? 2 : 3;
    const std::vector<Plan> plans = emit_plans(kStaged, problem(Collective::all_reduce, 3));
    for (const std::uint32_t ring : {enough - 1, enough, 0u}) {
      const std::string error = first_error(plans, {.chunks = 5, .skew = 1, .order = order, .ring = ring});
      EXPECT_EQ(error.empty(), ring != enough - 1) << ring << ": " << error;
    }
  }
}

TEST(ReferenceInterpreter, DetectsMissingCompleteMark) {
  std::vector<Plan> wrong = emit_plans(kRing, problem(Collective::all_reduce, 3));
  Steps steps(0);
  for (std::size_t i = 0; i < wrong[0].steps.size(); ++i) {
    steps.add(wrong[0].steps[i].sources, wrong[0].steps[i].targets);
  }
  wrong[0].steps = steps;
  EXPECT_NE(first_error(wrong), "");
}

TEST(ReferenceInterpreter, DetectsTooFewSlots) {
  const std::vector<Plan> plans = emit_plans(kTwoShot, problem(Collective::all_reduce, 3));
  EXPECT_EQ(first_error(plans, {.slots = 2, .longest = 2}), "");
  EXPECT_NE(first_error(plans, {.slots = 1, .longest = 2}), "");
}

// A fused ring sends two messages in its first round, and the loop takes slices of each in turn.
TEST(ReferenceInterpreter, DetectsMixedSlices_OfFusedRing) {
  std::vector<Plan> plans = emit_plans(kRing, problem(Collective::all_reduce, 3));
  for (Plan& plan : plans) fuse(plan);
  EXPECT_EQ(first_error(plans, {.slots = 2}), "");
  EXPECT_NE(first_error(plans, {.slots = 9, .longest = 3}), "");
}

}  // namespace
}  // namespace tutti::test
