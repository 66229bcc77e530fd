// Which steps of a straight program run as one on a GPU, and which programs the kernel of LL messages runs.
#include "src/executor/straighten.h"

#include <gtest/gtest.h>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"
#include "tests/executor/straightened.h"

namespace tutti::test {
namespace {

Plan plan_for(Rank ranks, Collective collective, const char* algorithm) {
  const Problem problem = {.collective = collective, .ranks = ranks, .groups = {}};
  std::vector<Plan> plans = emit_plans(*find(problem.collective, algorithm), problem);
  for (Plan& plan : plans) fuse(plan);
  fuse_stages(plans);
  return plans[3];
}

Plan plan_of_eight(Collective collective, const char* algorithm) { return plan_for(8, collective, algorithm); }
Plan two_shot() { return plan_of_eight(Collective::all_reduce, "two_shot"); }

TEST(Straighten, JoinsMessagesOfAllPeers) {
  Straightened straightened(two_shot());
  const std::vector<StraightStep> steps = straightened.steps(80);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].sends, 7U);
  EXPECT_EQ(steps[0].reads, 7U);
  EXPECT_EQ(steps[1].receives, 7U);
  EXPECT_EQ(steps[1].sends, 7U);
  EXPECT_EQ(steps[2].receives, 7U);
  EXPECT_EQ(steps[2].writes, 7U);
  EXPECT_EQ(steps[2].outputs, 0U) << "messages are copied, not folded";
  EXPECT_EQ(straightened.steps(80, false).size(), 15U);
}

// One of the eight units is longer than the others.
TEST(Straighten, JoinsNoMessagesOfDifferentLength) { EXPECT_EQ(Straightened(two_shot()).steps(81).size(), 7U); }

// A skewed loop with three stages has messages of three chunks in transit, any other loop of one chunk. With fewer
// slots, a message may wait for one that a joined step delays.
TEST(Straighten, JoinsMessagesOfChunks_WhileLanesHaveSlots) {
  struct Case {
    std::uint32_t skew, shift, chunks;
    std::size_t steps;
  };
  for (const auto& [skew, shift, chunks, steps] :
       {Case{1, 2, 1, 3}, {1, 2, 1000, 3}, {1, 1, 1, 3}, {1, 1, 2, 3}, {1, 1, 3, 15}, {0, 1, 1000, 3}, {0, 0, 8, 3}}) {
    Straightened straightened(two_shot());
    straightened.change_lanes([&](LaneView& view) { view.slot_shift = static_cast<std::uint8_t>(shift); });
    straightened.launch.loop.skew = skew;
    straightened.launch.loop.chunks = chunks;
    EXPECT_EQ(straightened.steps(8000).size(), steps) << skew << " " << shift << " " << chunks;
  }
}

// Message k is copied between extent k and slot k.
TEST(Straighten, JoinsSimpleMessagesOfAllPeers) {
  Straightened straightened(two_shot());
  straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
  const StraightProgram program = straightened.program(80);
  ASSERT_EQ(program.steps.size(), 3U);
  for (const std::size_t s : {0U, 2U}) {
    const StraightStep& step = program.steps[s];
    EXPECT_TRUE(step.copies);
    EXPECT_EQ(step.inputs, 7U);
    EXPECT_EQ(step.outputs, 7U);
    EXPECT_EQ(s == 0 ? step.sends : step.receives, 7U);
    for (std::uint16_t k = 0; k < 7; ++k) {
      EXPECT_EQ(program.lanes[step.lanes + k].index, k);
      EXPECT_EQ(program.memory[step.memory + k].index, k);
    }
  }
  EXPECT_FALSE(program.steps[1].copies);
  straightened.change_lanes([](LaneView& view) { view.slot_shift = 0; });
  straightened.launch.loop = {.chunks = 2, .skew = 1};
  EXPECT_EQ(straightened.steps(8000).size(), 15U) << "lanes have one slot";
  Straightened grouped(two_shot());
  grouped.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
  EXPECT_EQ(grouped.steps(81).size(), 7U) << "one unit is longer";
}

TEST(Straighten, JoinsNoSimpleMessagesThatFold) {
  const auto count = [](const Steps& steps) {
    Straightened straightened(plan_of(steps, 4));
    straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
    return straightened.steps(16).size();
  };
  Steps sums(0);
  sums.reduce(1, input(0), output(0));
  sums.reduce(2, input(1), output(1));
  EXPECT_EQ(count(sums), 2U);
  Steps spreads(0);  // The sum of two units to two ranks.
  spreads.fold({input(0), input(1)}, {lane(1, 1, 0), lane(2, 1, 0)});
  spreads.send(input(2), 1, 1);
  EXPECT_EQ(count(spreads), 2U);
  Steps overlaps(0);
  overlaps.recv(1, output(0));
  overlaps.recv(2, output(0));
  EXPECT_EQ(count(overlaps), 2U);
}

TEST(Straighten, JoinsNothing_WhenLanesHaveNoCredits) {
  Straightened straightened(two_shot());
  straightened.change_lanes([](LaneView& view) { view.form = LaneForm::swap; });
  EXPECT_EQ(straightened.steps(80).size(), 15U);
}

TEST(Straighten, JoinsNothing_WhenLaneLacksSlots) {
  Steps steps(0);
  for (std::uint32_t unit = 0; unit < 4; ++unit) steps.send(input(unit), 1 + unit % 2);
  const Plan plan = plan_of(steps, 4);
  EXPECT_EQ(Straightened(plan).steps(80).size(), 2U) << "a lane has one message in each";
  Straightened narrow(plan);
  narrow.change_lanes([](LaneView& view) { view.slot_shift = 0; });
  EXPECT_EQ(narrow.steps(80).size(), 4U);
  Steps received(0);
  for (std::uint32_t unit = 0; unit < 4; ++unit) received.recv(1 + unit % 2, output(unit));
  Straightened reader(plan_of(received, 4));
  EXPECT_EQ(reader.steps(80).size(), 2U);
  reader.change_lanes([](LaneView& view) { view.slot_shift = 0; });
  EXPECT_EQ(reader.steps(80).size(), 4U) << "the writer waits for the reader";
}

TEST(Straighten, JoinsNoMessagesToOneTarget) {
  Steps steps(0);
  steps.recv(1, output(0));
  steps.recv(2, output(0));
  EXPECT_EQ(Straightened(plan_of(steps, 2)).steps(80).size(), 2U);
  Steps apart(0);
  apart.recv(1, output(0));
  apart.recv(2, output(1));
  EXPECT_EQ(Straightened(plan_of(apart, 2)).steps(80).size(), 1U);
}

TEST(Straighten, ReceivesOnlyLlWhereItIsCopied) {
  Steps steps(0);
  steps.recv(1, output(0));
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    Straightened straightened(plan_of(steps, 1));
    straightened.change_lanes([&](LaneView& view) { view.protocol = protocol; });
    EXPECT_EQ(straightened.steps(8)[0].outputs, protocol == Protocol::ll ? 0U : 1U);
  }
}

// The seven units that a rank copies into its scratch, and out of it, are copied at once.
TEST(Straighten, JoinsCopiesBesideScratch) {
  Straightened straightened(plan_of_eight(Collective::all_reduce, "two_shot_staged"));
  straightened.launch.loop.ring = 2;
  const StraightProgram program = straightened.program(80);
  const std::vector<StraightStep>& steps = program.steps;
  ASSERT_EQ(steps.size(), 3U);
  for (const std::size_t s : {0U, 2U}) {
    EXPECT_TRUE(steps[s].copies);
    EXPECT_EQ(steps[s].inputs, 7U);
    EXPECT_EQ(steps[s].outputs, 7U);
    for (std::uint32_t k = 0; k < 7; ++k) {
      const StraightMemory &read = program.memory[steps[s].memory + k],
                           &written = program.memory[steps[s].memory + 7 + k];
      EXPECT_EQ(read.index, k);
      EXPECT_EQ(written.index, k);
      EXPECT_EQ(read.operand->first % 8, written.operand->first % 8) << "a copy of another unit";
      EXPECT_EQ(read.operand->first % 8, (4 + k) % 8);
    }
  }
  EXPECT_FALSE(steps[1].copies);
  EXPECT_EQ(steps[0].sends, 7U);
  EXPECT_EQ(steps[2].receives, 7U);
  EXPECT_EQ(straightened.steps(80, false).size(), 15U);
  EXPECT_EQ(straightened.steps(81).size(), 6U) << "one unit is longer";
  straightened.launch.loop.chunks = 5;
  EXPECT_EQ(straightened.steps(80).size(), 3U) << "more chunks than positions of the ring";
}

TEST(Straighten, JoinsReadsOfAllPeersScratch) {
  Straightened straightened(plan_of_eight(Collective::all_gather, "direct_staged"));
  straightened.launch.loop.ring = 2;
  const std::vector<StraightStep> steps = straightened.steps(80);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[1].inputs, 7U);
  EXPECT_EQ(steps[1].receives, 7U);
  EXPECT_EQ(steps[1].sends, 7U);
}

// Outside of scratch, buffers may be the same.
TEST(Straighten, JoinsNoCopiesThatMayDependOnEachOther) {
  const auto count = [](const auto& each, std::uint32_t copies = 2) {
    Steps steps(0);
    for (std::uint32_t k = 0; k < copies; ++k) {
      const auto [source, target] = each(k);
      steps.add({&source, 1}, {&target, 1});
    }
    Plan plan = plan_of(steps, copies);
    plan.shape.scratch = 4;
    return Straightened(plan).steps(80).size();
  };
  using Copy = std::pair<Operand, Operand>;
  EXPECT_EQ(count([](std::uint32_t k) { return Copy(input(k), scratch(k)); }), 1U);
  EXPECT_EQ(count([](std::uint32_t k) { return Copy(input(k), scratch(0)); }), 2U);
  EXPECT_EQ(count([](std::uint32_t k) { return Copy(input(k), output(1 - k)); }), 2U);
  EXPECT_EQ(count([](std::uint32_t k) { return Copy(scratch(k), scratch(k + 1)); }), 2U);
  EXPECT_EQ(count([](std::uint32_t k) { return k == 0 ? Copy(input(0), scratch(0)) : Copy(scratch(0), output(0)); }),
            2U);
  EXPECT_EQ(count([](std::uint32_t k) { return k == 0 ? Copy(input(0), scratch(0)) : Copy(scratch(0), scratch(1)); }),
            2U);
  EXPECT_EQ(count([](std::uint32_t k) { return Copy(input(k), scratch(k)); }, 4), 1U) << "more than a step has";
}

// A rank that awaits or signals between two copies may do so for one of them.
TEST(Straighten, JoinsNoCopiesAroundFlags) {
  const Operand from[] = {input(0), flag(1), input(1), flag(1)}, to[] = {scratch(0), flag(1), scratch(1), flag(1)};
  struct Flags {
    bool awaited, signalled;
  };
  const auto count = [&](Flags first, Flags second) {
    Steps steps(0);
    steps.add({from, first.awaited ? 2U : 1U}, {to, first.signalled ? 2U : 1U});
    steps.add({from + 2, second.awaited ? 2U : 1U}, {to + 2, second.signalled ? 2U : 1U});
    Plan plan = plan_of(steps, 2);
    plan.shape.scratch = 2;
    return Straightened(plan).steps(80).size();
  };
  EXPECT_EQ(count({.awaited = true, .signalled = false}, {.awaited = false, .signalled = true}), 1U);
  EXPECT_EQ(count({.awaited = false, .signalled = false}, {.awaited = true, .signalled = false}), 2U);
  EXPECT_EQ(count({.awaited = false, .signalled = true}, {.awaited = false, .signalled = false}), 2U);
}

TEST(Straighten, FindsLanesInOrderOfTheirEnds) {
  for (const StraightStep& step : Straightened(plan_of_eight(Collective::all_reduce, "two_shot_mapped")).steps(80))
    EXPECT_TRUE(step.in_order);
  const Operand awaited[] = {flag(1), flag(2)}, swapped[] = {flag(2), flag(1)};
  Steps steps(0);
  steps.add(awaited, {});
  steps.add(swapped, {});
  steps.add({}, swapped);
  const std::vector<StraightStep> made = Straightened(plan_of(steps, 1)).steps(80);
  ASSERT_EQ(made.size(), 3U);
  EXPECT_TRUE(made[0].in_order);
  EXPECT_FALSE(made[1].in_order) << "of two receiving lanes, the second has the first end";
  EXPECT_TRUE(made[2].in_order) << "sending lanes have other ends";
}

TEST(Straighten, CountsThreadsWithWork) {
  Straightened messages(two_shot());  // Seven messages of 40 bytes or 5 words at once: 8 of 8 words.
  EXPECT_EQ(busy_threads(messages.launch, messages.program(80)), 64U);
  Straightened folds(plan_of_eight(Collective::all_reduce, "two_shot_mapped"));  // 40 bytes of each rank: 3 packs.
  EXPECT_EQ(busy_threads(folds.launch, folds.program(80)), 8U) << "as for eight flags";
  EXPECT_EQ(busy_threads(folds.launch, folds.program(8000)), 250U);
  EXPECT_EQ(busy_threads(folds.launch, StraightProgram{}), ~0U) << "an interpreted program";
}

TEST(ImageOfLlMessages, IsMarked) {
  EXPECT_EQ(Straightened(plan_of_eight(Collective::all_reduce, "one_shot")).ll(80), Image::kLl);
  EXPECT_EQ(Straightened(two_shot()).ll(80), Image::kLl);
  EXPECT_EQ(Straightened(plan_of_eight(Collective::all_gather, "direct")).ll(80), Image::kLl);
  EXPECT_EQ(Straightened(plan_of_eight(Collective::all_to_all, "direct")).ll(80), Image::kLl);
  EXPECT_EQ(Straightened(plan_of_eight(Collective::broadcast, "binary_tree")).ll(80), Image::kLl);
}

TEST(ImageOfLlMessages, Joins_IfStepsFollowEachOtherOnOneLane) {
  EXPECT_EQ(Straightened(plan_of_eight(Collective::all_reduce, "ring")).ll(80), Image::kLlJoins);
  Straightened chunks(two_shot());
  chunks.launch.loop.chunks = 2;
  EXPECT_EQ(chunks.ll(80), Image::kLlJoins);
}

TEST(ImageOfLlMessages, IsNotMarked_IfOtherCodeIsNeeded) {
  EXPECT_EQ(Straightened(two_shot()).change_lanes([](LaneView& view) { view.protocol = Protocol::simple; }).ll(80),
            Image::kNotLl);
  EXPECT_EQ(Straightened(two_shot()).change_lanes([](LaneView& view) { view.protocol = Protocol::ll128; }).ll(80),
            Image::kNotLl);
  EXPECT_EQ(Straightened(two_shot()).change_lanes([](LaneView& view) { view.form = LaneForm::swap; }).ll(80),
            Image::kNotLl);
  EXPECT_EQ(Straightened(plan_for(9, Collective::all_reduce, "one_shot")).ll(90), Image::kNotLl) << "a fold of 9";
  EXPECT_EQ(Straightened(plan_of_eight(Collective::all_reduce, "two_shot_mapped")).ll(80), Image::kNotLl);
  EXPECT_EQ(Straightened(plan_of_eight(Collective::all_reduce, "two_shot_staged")).ll(80), Image::kNotLl);
  Straightened interpreted(two_shot());
  interpreted.launch.slice_elements = 5;
  EXPECT_EQ(interpreted.ll(80), Image::kNotLl);
  Straightened skewed(plan_of_eight(Collective::all_reduce, "ring"));
  skewed.launch.loop.skew = 1;
  EXPECT_EQ(skewed.ll(80), Image::kNotLl);
}

}  // namespace
}  // namespace tutti::test
