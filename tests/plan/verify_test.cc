#include "src/plan/verify.h"

#include <gtest/gtest.h>

#include "tests/plan/reference_interpreter.h"
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
const TreeBroadcast kTree;
const MappedAllReduce kMapped;

std::string failure(std::span<const Plan> plans, const Loop& loop = {}) {
  return verify(plans, loop).status().message();
}

TEST(Verifier, AcceptsSamples) {
  for (Rank ranks = 1; ranks <= 20; ++ranks) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(describe(problem(Collective::all_reduce, ranks, in_place)));
      EXPECT_EQ(failure(emit_plans(kRingReduceScatter, problem(Collective::reduce_scatter, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kRingAllGather, problem(Collective::all_gather, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kRing, problem(Collective::all_reduce, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kTwoShot, problem(Collective::all_reduce, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kTree, problem(Collective::broadcast, ranks, in_place))), "");
      EXPECT_EQ(failure(emit_plans(kMapped, problem(Collective::all_reduce, ranks, in_place))), "");
    }
  }
}

// Rank 0's and rank 1's steps of one round, in a problem of two ranks.
std::vector<Plan> pair(const Problem& problem, const Shape& shape, const Steps& first, const Steps& second) {
  std::vector<Plan> plans;
  for (const Steps* steps : {&first, &second}) {
    plans.push_back({.problem = problem,
                     .shape = shape,
                     .steps = *steps,
                     .rounds = {0, static_cast<std::uint32_t>(steps->size())}});
  }
  return plans;
}

// A broadcast of two ranks in which rank 0 only sends.
std::string broadcast_failure(const Steps& root, const Steps& leaf,
                              const Shape& shape = {.units = 2, .scratch = 2, .rounds = 1, .stages = {0}}) {
  return failure(pair(problem(Collective::broadcast, 2, true), shape, root, leaf));
}

TEST(Verifier, ReportsReadOfUnwrittenUnit) {
  Steps root(0), leaf(1);
  root.send(input(0, 2), 1);
  leaf.recv(0, output(0, 2));
  EXPECT_EQ(broadcast_failure(root, leaf), "");
  leaf.copy(scratch(1), output(1));
  EXPECT_EQ(broadcast_failure(root, leaf),
            "chunk 0, rank 1, round 0, step 1: unwritten: reads scratch[1] of rank 1, which no step has written");
}

TEST(Verifier, ReportsMissingOutput) {
  Steps root(0), leaf(1);
  root.send(input(0), 1);
  leaf.recv(0, output(0));
  EXPECT_EQ(broadcast_failure(root, leaf),
            "chunk 0, rank 1: at its return output[1] of rank 1: missing: no step has written it");
}

TEST(Verifier, ReportsUnmatchedMessages) {
  Steps root(0), leaf(1);
  root.send(input(0, 2), 1);
  root.send(input(0, 2), 1);
  leaf.recv(0, output(0, 2));
  EXPECT_EQ(broadcast_failure(root, leaf), "rank 0, round 0, step 1: its message to rank 1 (tag 0) is never received");
  EXPECT_EQ(broadcast_failure(Steps(0), leaf),
            "rank 1, round 0, step 0: blocked: waits for a message of rank 0 (tag 0) that is never sent");
}

TEST(Verifier, RequiresMatchingMessageLengths) {
  Steps root(0), leaf(1);
  root.send(input(0), 1);
  root.send(input(1), 1);
  leaf.recv(0, output(1));
  leaf.recv(0, output(0));
  EXPECT_NE(broadcast_failure(root, leaf).find("rank 1, round 0, step 0: the length of a message differs"),
            std::string::npos);
}

TEST(Verifier, RequiresUnitsInsideMemory_AndReadOnlyInput) {
  Steps root(0), leaf(1);
  root.send(input(1, 2), 1);
  EXPECT_NE(broadcast_failure(root, leaf).find("input[1..2] lies outside of its 2 units"), std::string::npos);
  leaf.send(input(0), 0);
  EXPECT_NE(broadcast_failure(Steps(0), leaf).find("rank 1, round 0, step 0: input[0] lies outside of its 0 units"),
            std::string::npos);
  Steps writer(0);
  writer.copy(output(0), input(0));
  EXPECT_NE(broadcast_failure(writer, Steps(1)).find("writes the caller's input"), std::string::npos);
}

TEST(Verifier, RequiresReadAndWriteOfUnitAtSamePosition) {
  const Shape shape{.units = 1, .scratch = 3, .rounds = 1, .stages = {0}};
  Steps steps(0);
  steps.copy(scratch(0, 2), scratch(1, 2));
  EXPECT_NE(broadcast_failure(steps, Steps(1), shape).find("at another position"), std::string::npos);
  steps = Steps(0);
  steps.fold({input(0)}, {scratch(1), scratch(1)});
  EXPECT_NE(broadcast_failure(steps, Steps(1), shape).find("writes a unit twice"), std::string::npos);
}

// Both ranks fold; rank 1 passes its own operand first.
TEST(Verifier, RequiresSameBitsOnAllRanks) {
  const Problem all_reduce = problem(Collective::all_reduce, 2);
  const Shape shape{.units = 1, .scratch = 0, .rounds = 1, .stages = {0}};
  Steps first(0), second(1);
  first.send(input(0), 1);
  first.fold({input(0), lane(1, 1)}, {output(0)}, Fold::complete);
  second.send(input(0), 0);
  second.fold({input(0), lane(0, 1)}, {output(0)}, Fold::complete);
  EXPECT_NE(failure(pair(all_reduce, shape, first, second)).find("other bits than on rank"), std::string::npos);
}

TEST(Verifier, DistinguishesDoubledFromMissing) {
  const Problem reduce = problem(Collective::reduce, 2);
  const Shape shape{.units = 1, .scratch = 1, .rounds = 1, .stages = {0}};
  Steps root(0), leaf(1);
  root.fold({lane(1, 1), input(0), input(0)}, {output(0)});
  leaf.send(input(0), 0);
  EXPECT_NE(failure(pair(reduce, shape, root, leaf)).find("doubled: rank 0's contribution"), std::string::npos);
  root = Steps(0);
  root.recv(1, output(0));
  EXPECT_NE(failure(pair(reduce, shape, root, leaf)).find("missing: rank 0's contribution"), std::string::npos);
}

TEST(Verifier, RequiresCompleteOnLastFoldOnly) {
  const Problem reduce = problem(Collective::reduce, 2);
  const Shape shape{.units = 1, .scratch = 1, .rounds = 1, .stages = {0}};
  Steps root(0), leaf(1);
  leaf.send(input(0), 0);
  root.reduce(1, input(0), output(0));
  EXPECT_NE(failure(pair(reduce, shape, root, leaf)).find("no fold of it is marked complete"), std::string::npos);
  root = Steps(0);
  root.fold({lane(1, 1), input(0)}, {scratch(0)}, Fold::complete);
  root.fold({scratch(0)}, {output(0)});
  EXPECT_EQ(failure(pair(reduce, shape, root, leaf)), "");
  root.fold({input(0), input(0), input(0)}, {scratch(0)}, Fold::complete);
  EXPECT_NE(failure(pair(reduce, shape, root, leaf)).find("marked complete, but holds a sum of 3"), std::string::npos);
}

// A reduction scales the operands that it reads as input, but not as output.
TEST(Verifier, RequiresContributionsAsInput_InPlace) {
  const Problem reduce = problem(Collective::reduce, 2, true);
  const Shape shape{.units = 1, .scratch = 1, .rounds = 1, .stages = {0}};
  Steps root(0), leaf(1);
  leaf.send(input(0), 0);
  root.reduce(1, output(0), output(0), Fold::complete);
  EXPECT_NE(failure(pair(reduce, shape, root, leaf)).find("which in place still holds the input"), std::string::npos);
  root = Steps(0);
  root.recv(1, output(0));
  root.fold({output(0), input(0)}, {output(0)}, Fold::complete);
  EXPECT_NE(failure(pair(reduce, shape, root, leaf)).find("overwritten"), std::string::npos);
}

TEST(Verifier, DetectsDeadlock_WithAnyNumberOfSlots) {
  Steps root(0), leaf(1);
  root.recv(1, scratch(0));
  root.send(input(0, 2), 1);
  leaf.recv(0, output(0, 2));
  leaf.send(output(0), 0);
  EXPECT_NE(broadcast_failure(root, leaf).find("blocked: waits for a message of rank"), std::string::npos);
}

TEST(Verifier, CountsMinimumSlots) {
  Steps root(0), leaf(1);
  for (const std::uint32_t unit : {0, 1, 0, 1}) root.send(input(unit), 1);
  root.send(input(0), 1, 1);
  leaf.recv(0, output(0), 1);
  for (const std::uint32_t unit : {0, 1, 0, 1}) leaf.recv(0, output(unit));
  const Shape shape{.units = 2, .scratch = 0, .rounds = 1, .stages = {0}};
  const Proof proof = verify(pair(problem(Collective::broadcast, 2, true), shape, root, leaf)).value();
  EXPECT_EQ(proof.slots, 4u);
  EXPECT_EQ(proof.messages, 5u);
  EXPECT_TRUE(proof.balanced);  // All messages arrive in their round, whatever the number in flight.
}

TEST(Verifier, RecognizesBalancedRounds) {
  const Problem all_reduce = problem(Collective::all_reduce, 5);
  EXPECT_TRUE(verify(emit_plans(kRing, all_reduce)).value().balanced);
  const Proof two_shot = verify(emit_plans(kTwoShot, all_reduce)).value();
  EXPECT_FALSE(two_shot.balanced);
  EXPECT_FALSE(two_shot.drained);
}

TEST(Verifier, AllowsSlices_OnlyOfBalancedPlans) {
  const Proof balanced{.slots = 2, .balanced = true};
  EXPECT_TRUE(suffices(balanced, {.slots = 2, .longest = 9}));
  EXPECT_FALSE(suffices(balanced, {.slots = 1}));
  const Proof unbalanced{.slots = 2, .balanced = false};
  EXPECT_TRUE(suffices(unbalanced, {.slots = 2}));
  EXPECT_FALSE(suffices(unbalanced, {.slots = 16, .longest = 2}));  // More slots do not keep slices apart.
}

// Slices of a round's steps alternate: a slice must not read what a later slice of an earlier step writes.
TEST(Verifier, ForbidsSlices_OfStepsAtDifferentPositions) {
  Steps root(0), leaf(1);
  root.send(input(0, 2), 1);
  root.recv(1, scratch(1));
  leaf.recv(0, output(0, 2));
  leaf.send(output(1), 0);
  const Shape shape{.units = 2, .scratch = 2, .rounds = 1, .stages = {0}};
  EXPECT_FALSE(verify(pair(problem(Collective::broadcast, 2, true), shape, root, leaf)).value().balanced);
}

TEST(Verifier, NeedsMoreSlots_WithLargerSkew) {
  const std::vector<Plan> plans = emit_plans(kTwoShot, problem(Collective::all_reduce, 3));
  std::uint32_t before = 0;
  for (const std::uint32_t skew : {0u, 2u, 5u}) {
    const Proof proof = verify(plans, {.chunks = 30, .skew = skew}).value();
    EXPECT_GT(proof.slots, before);
    before = proof.slots;
  }
  EXPECT_EQ(verify(emit_plans(kRing, problem(Collective::all_reduce, 3)), {.chunks = 30, .skew = 5}).value().slots, 1u);
}

// The previous operation of the peer may still use its scratch.
TEST(Verifier, RejectsPlan_WhenPeersWriteScratchBeforeEntry) {
  const std::string race = failure(emit_plans(PushAllReduce(), problem(Collective::all_reduce, 3)));
  EXPECT_NE(race.find("race: its write of scratch["), std::string::npos) << race;
  EXPECT_NE(race.find("by the caller of operation 0"), std::string::npos) << race;
}

// Stage 0 receives into scratch, stage 1 copies it from there, up to two chunks later: each chunk has its own scratch.
TEST(Verifier, AcceptsScratchOfLaterStages_WhenChunksOverlap) {
  class Late : public Sample {
   public:
    Late() : Sample(Collective::broadcast) {}
    Shape shape(const Problem&) const override { return {.units = 1, .scratch = 1, .rounds = 2, .stages = {0, 1}}; }
    void emit(const Problem&, Rank self, std::uint32_t round, Steps& steps) const override {
      if (self == 0 && round == 0) steps.send(input(0), 1);
      if (self == 1 && round == 0) steps.recv(0, scratch(0));
      if (self == 1 && round == 1) steps.copy(scratch(0), output(0));
    }
  };
  const std::vector<Plan> plans = emit_plans(Late(), problem(Collective::broadcast, 2, true));
  for (const StageOrder order : {StageOrder::latest_first, StageOrder::earliest_first}) {
    const Loop loop{.chunks = 9, .skew = 2, .order = order, .slots = 1};
    EXPECT_EQ(failure(plans, loop), "");
    EXPECT_EQ(run_reference(plans, loop, 1).text, "");
    for (const std::uint32_t ring : {1u, 2u, 3u}) {
      const std::string error = failure(plans, {.chunks = 9, .skew = 2, .order = order, .ring = ring});
      const bool enough = ring >= (order == StageOrder::latest_first ? 2u : 3u);
      EXPECT_EQ(error.find("holds a value of another chunk") == std::string::npos, enough) << ring << ": " << error;
      EXPECT_EQ(error.empty(), enough) << ring;
    }
  }
}

// With the latest stage first, a rank has read chunk k - 2 when it writes chunk k; with the earliest first, chunk k
// - 3.
TEST(Verifier, DeterminesAfterHowManyChunksPeersScratchIsReused) {
  for (const bool in_place : {false, true}) {
    const std::vector<Plan> plans = emit_plans(StagedAllReduce(), problem(Collective::all_reduce, 3, in_place));
    for (const StageOrder order : {StageOrder::latest_first, StageOrder::earliest_first}) {
      const std::uint32_t enough = order == StageOrder::latest_first ? 2 : 3;
      for (const std::uint32_t chunks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 100u}) {
        for (const std::uint32_t ring : {1u, 2u, 3u, 4u, 0u}) {
          const Loop loop{.chunks = chunks, .skew = 1, .order = order, .ring = ring};
          const std::string error = failure(plans, loop);
          EXPECT_EQ(error.empty(), ring == 0 || ring >= std::min(enough, chunks))
              << chunks << " chunks, ring " << ring << ": " << error;
          EXPECT_TRUE(error.empty() || error.find("race: ") != std::string::npos) << error;
        }
      }
    }
    EXPECT_EQ(failure(plans, {.chunks = 9, .ring = 1}), "");  // Without skew, no two chunks are in progress.
  }
}

// Entry flags keep two operations of this plan apart, but the next operation may have another plan.
TEST(Verifier, RejectsPlan_WhenPeersReadScratchAfterReturn) {
  class Pull : public Sample {
   public:
    Pull() : Sample(Collective::all_reduce) {}
    Shape shape(const Problem&) const override { return {.units = 1, .scratch = 1, .rounds = 1, .stages = {0}}; }
    void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
      std::vector<Operand> flags, sources;
      for (Rank rank = 0; rank < problem.ranks; ++rank) {
        if (rank != self) flags.push_back(flag(rank));
        sources.push_back(at(rank, scratch(0)));
      }
      const Operand target = output(0);
      steps.add({}, flags);
      steps.add(flags, {});
      steps.copy(input(0), scratch(0));
      steps.add({}, flags);
      steps.add(flags, {});
      steps.add(sources, {&target, 1}, Fold::complete);
    }
  };
  const std::string race = failure(emit_plans(Pull(), problem(Collective::all_reduce, 3)));
  EXPECT_NE(race.find("race: its read of scratch[0]"), std::string::npos) << race;
  EXPECT_NE(race.find("by the caller of operation 1"), std::string::npos) << race;
}

TEST(Verifier, RequiresEntryAndExitFlags_ForMappedMemory) {
  for (const bool in_place : {false, true}) {
    const std::vector<Plan> plans = emit_plans(kMapped, problem(Collective::all_reduce, 3, in_place));
    for (const std::uint32_t without : {0u, 2u}) {  // The flag rounds.
      std::vector<Plan> changed = plans;
      for (Plan& plan : changed) {
        Steps steps(plan.steps.self());
        std::vector<std::uint32_t> rounds{0};
        for (std::uint32_t round = 0; round < 3; ++round) {
          if (round != without) kMapped.emit(plan.problem, plan.steps.self(), round, steps);
          rounds.push_back(static_cast<std::uint32_t>(steps.size()));
        }
        plan.steps = steps;
        plan.rounds = rounds;
      }
      const std::string violation = failure(changed);  // Without exit flags a rank returns before others write there.
      EXPECT_NE(violation.find(without == 0 ? "race: " : "missing: no step has written it"), std::string::npos)
          << violation;
    }
  }
}

TEST(Verifier, RequiresConsistentPlansOfAllRanks) {
  std::vector<Plan> plans = emit_plans(kRing, problem(Collective::all_reduce, 3));
  EXPECT_NE(failure(std::span(plans).first(2)), "");
  ++plans[2].shape.scratch;
  EXPECT_NE(failure(plans).find("rank 2: its problem or shape differs"), std::string::npos);
}

TEST(Verifier, VerifiesRingOf64Ranks) {
  EXPECT_EQ(failure(emit_plans(kRing, problem(Collective::all_reduce, 64))), "");
}

}  // namespace
}  // namespace tutti::test
