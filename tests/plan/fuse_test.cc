#include "src/plan/fuse.h"

#include <gtest/gtest.h>

#include "src/plan/print.h"
#include "src/plan/verify.h"
#include "tests/plan/samples.h"

namespace tutti::test {
namespace {

using namespace samples;

const RingReduceScatter kRingReduceScatter;
const RingAllGather kRingAllGather;
const DirectReduceScatter kDirectReduceScatter;
const DirectAllGather kDirectAllGather;
const AllReduce kRing(kRingReduceScatter, kRingAllGather);
const AllReduce kTwoShot(kDirectReduceScatter, kDirectAllGather);

std::vector<Plan> fused(const Algorithm& algorithm, const Problem& problem, Across across) {
  std::vector<Plan> plans = emit_plans(algorithm, problem);
  for (Plan& plan : plans) fuse(plan, across);
  return plans;
}

// Returns one rank's plan of a round with these steps.
Plan plan_of(const Steps& steps, std::uint32_t rounds = 1) {
  Plan plan{.problem = problem(Collective::all_reduce, 4),
            .shape = {.units = 8, .scratch = 8, .rounds = rounds, .stages = {0}},
            .steps = steps,
            .rounds = {}};
  for (std::uint32_t i = 0; i < rounds; ++i) plan.rounds.push_back(0);
  plan.rounds.push_back(static_cast<std::uint32_t>(steps.size()));
  return plan;
}

std::string text_after_fuse(const Steps& steps) {
  Plan plan = plan_of(steps);
  fuse(plan);
  std::string text;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) text += describe(plan.steps[i], steps.self()) + "\n";
  return text;
}

TEST(Fuse, CombinesReceiveReduceSend) {
  Steps steps(0);
  steps.reduce(1, input(2), scratch(2));
  steps.send(scratch(2), 3);
  EXPECT_EQ(text_after_fuse(steps), "lane 1 + input[2] -> lane 3\n");
}

TEST(Fuse, KeepsForwardedOutput) {
  Steps steps(0);
  steps.recv(1, output(2));
  steps.send(output(2), 3);
  EXPECT_EQ(text_after_fuse(steps), "lane 1 -> output[2], lane 3\n");
}

TEST(Fuse, CombinesFanOut) {
  Steps steps(0);
  for (const Rank peer : {1, 2, 3}) steps.send(input(0, 8), peer);
  EXPECT_EQ(text_after_fuse(steps), "input[0..7] -> lane 1, lane 2, lane 3\n");
}

TEST(Fuse, KeepsOrderOfMessages) {
  Steps steps(0);
  steps.recv(1, output(2));
  steps.send(output(5), 3);
  steps.send(output(2), 3);
  EXPECT_EQ(text_after_fuse(steps), "lane 1 -> output[2]\noutput[5] -> lane 3\noutput[2] -> lane 3\n");
}

TEST(Fuse, DoesNotSendOverwrittenUnit) {
  Steps steps(0);
  steps.recv(1, output(2));
  steps.recv(1, output(2));
  steps.send(output(2, 1), 3);
  EXPECT_EQ(text_after_fuse(steps), "lane 1 -> output[2]\nlane 1 -> output[2], lane 3\n");
}

TEST(Fuse, DoesNotWrite_BeforeAnotherStepReads) {
  Steps steps(0);
  steps.recv(1, output(2));
  steps.send(output(3), 2);
  steps.copy(output(2), output(3));
  EXPECT_EQ(text_after_fuse(steps), "lane 1 -> output[2]\noutput[3] -> lane 2\noutput[2] -> output[3]\n");
}

TEST(Fuse, CombinesFoldsFromTheLeft) {
  Steps steps(0);
  steps.fold({input(0), lane(1, 1)}, {scratch(0)});
  steps.fold({scratch(0), lane(2, 1)}, {scratch(0)});
  steps.fold({scratch(0), lane(3, 1)}, {output(0)}, Fold::complete);
  EXPECT_EQ(text_after_fuse(steps), "input[0] + lane 1 + lane 2 + lane 3 -> output[0] (complete)\n");
}

TEST(Fuse, KeepsOrderOfAdditions) {
  Steps steps(0);
  steps.fold({lane(1, 1), input(0)}, {scratch(0)});
  steps.fold({lane(2, 1), scratch(0)}, {output(0)});
  EXPECT_EQ(text_after_fuse(steps), "lane 1 + input[0] -> scratch[0]\nlane 2 + scratch[0] -> output[0]\n");
}

TEST(Fuse, KeepsPartialSums_ThatOtherStepsRead) {
  Steps steps(0);
  steps.fold({input(0), lane(1, 1)}, {scratch(0)});
  steps.fold({scratch(0), lane(2, 1)}, {output(0)});
  steps.reduce(3, scratch(0), output(1));
  EXPECT_EQ(text_after_fuse(steps),
            "input[0] + lane 1 -> scratch[0]\nscratch[0] + lane 2 -> output[0]\nlane 3 + scratch[0] -> output[1]\n");
}

TEST(Fuse, MovesNothingPastFlags) {
  Steps steps(0);
  steps.recv(1, output(2));
  steps.await(3);
  steps.send(output(2), 3);
  EXPECT_EQ(text_after_fuse(steps), "lane 1 -> output[2]\nflag 3 -> \noutput[2] -> lane 3\n");
}

TEST(Fuse, RemovesIntermediateScratch) {
  Steps steps(0);
  steps.recv(1, scratch(4));
  steps.copy(scratch(4), output(4));
  EXPECT_EQ(text_after_fuse(steps), "lane 1 -> output[4]\n");
}

TEST(Fuse, TreatsInputAsOutput_InPlace) {
  Steps steps(0);
  steps.send(input(2), 1);
  steps.recv(2, output(2));
  steps.send(input(2), 3);
  Plan plan = plan_of(steps);
  plan.problem.in_place = true;
  plan.problem.collective = Collective::all_to_all;
  fuse(plan);
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(describe(plan.steps[1], 0), "lane 2 -> output[2], lane 3");
}

TEST(Fuse, KeepsPlansCorrect) {
  for (Rank ranks = 1; ranks <= 17; ++ranks) {
    for (const bool in_place : {false, true}) {
      for (const Across across : {Across::rounds, Across::stages}) {
        SCOPED_TRACE(ranks);
        const Problem all_reduce = problem(Collective::all_reduce, ranks, in_place);
        EXPECT_EQ(verify(fused(kRing, all_reduce, across)).status().message(), "");
        EXPECT_EQ(verify(fused(kTwoShot, all_reduce, across)).status().message(), "");
        EXPECT_EQ(
            verify(fused(TreeBroadcast(), problem(Collective::broadcast, ranks, in_place), across)).status().message(),
            "");
        EXPECT_EQ(verify(fused(MappedAllReduce(), all_reduce, across)).status().message(), "");
      }
    }
  }
}

TEST(Fuse, GivesRingOneStepPerRound_WithTwoSlots) {
  const std::vector<Plan> plans = fused(kRing, problem(Collective::all_reduce, 8), Across::stages);
  EXPECT_EQ(plans[3].steps.size(), 15u);  // A send, 13 that receive and send, a receive.
  const Proof proof = verify(plans).value();
  EXPECT_EQ(proof.slots, 2u);
  EXPECT_FALSE(proof.balanced);
  EXPECT_EQ(verify(emit_plans(kRing, problem(Collective::all_reduce, 8))).value().slots, 1u);
}

TEST(Fuse, GivesTwoShotThreeStages) {
  for (const bool in_place : {false, true}) {
    std::vector<Plan> plans = fused(kTwoShot, problem(Collective::all_reduce, 3, in_place), Across::rounds);
    fuse_stages(plans);
    EXPECT_EQ(plans[1].shape.stages, (std::vector<std::uint32_t>{0, 1, 2}));
    ASSERT_EQ(plans[1].steps.size(), 5u);
    EXPECT_EQ(describe(plans[1].steps[2], 1), "lane 0 + input[1] + lane 2 -> output[1], lane 0, lane 2 (complete)");
    for (const std::uint32_t skew : {0u, 1u, 2u, 5u}) {
      EXPECT_EQ(verify(plans, {.chunks = 20, .skew = skew}).status().message(), "");
    }
  }
}

TEST(Fuse, KeepsStages_ThatSomeRankNeeds) {
  std::vector<Plan> plans = fused(kRing, problem(Collective::all_reduce, 4), Across::rounds);
  fuse_stages(plans);
  EXPECT_EQ(plans[0].shape.stages, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_TRUE(verify(plans).value().drained);
}

}  // namespace
}  // namespace tutti::test
