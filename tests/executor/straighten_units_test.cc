// Which units that are apart in memory a GPU copies, or adds by switches, in one step.
#include <gtest/gtest.h>

#include <map>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"
#include "tests/executor/straightened.h"

namespace tutti::test {
namespace {

// A message of units that are apart in memory has an operand for each of them, in the order of the units.
TEST(StraightenUnits, CopiesEachUnitOfMessages) {
  const Problem problem = {.collective = Collective::all_to_all, .ranks = 6, .groups = {{2, 2, 2}}};
  const Plan plan = emit_plan(*find(problem.collective, "hierarchical"), problem, 2);
  Straightened straightened(plan);
  straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
  straightened.launch.loop = {.chunks = 2, .skew = 1};
  const StraightProgram program = straightened.program(8);
  const auto units = [&](std::size_t s, bool written) {
    const StraightStep& step = program.steps[s];
    std::vector<std::uint64_t> found;
    for (std::uint32_t k = 0; k < step.inputs; ++k) {
      const StraightMemory& memory = program.memory[step.memory + k + (written ? step.reads : 0)];
      EXPECT_EQ(memory.index, k);
      found.push_back(memory.offset / 32);
    }
    return found;
  };
  using Units = std::vector<std::uint64_t>;
  ASSERT_EQ(program.steps.size(), 6U);
  EXPECT_EQ(units(0, false), (Units{1, 3, 5})) << "sent to the other rank of the host";
  EXPECT_EQ(units(1, false), (Units{0, 2, 4})) << "kept";
  EXPECT_EQ(units(1, true), (Units{0, 1, 2}));
  EXPECT_EQ(units(2, true), (Units{3, 4, 5}));
  EXPECT_EQ(units(3, false), (Units{2, 5, 0, 3})) << "sent to the next host and the one after it";
  EXPECT_EQ(units(4, false), (Units{1, 4})) << "for this host";
  EXPECT_EQ(units(4, true), (Units{2, 3}));
  EXPECT_EQ(units(5, true), (Units{0, 1, 4, 5}));
  for (const StraightStep& step : program.steps) EXPECT_TRUE(step.copies && step.count == 8 && step.size == 4);
  EXPECT_EQ(program.lanes[program.steps[3].lanes].units, 2U);
  EXPECT_EQ(program.lanes[program.steps[3].lanes + 1].index, 2U);
  straightened.launch.slice_elements = 11;
  EXPECT_TRUE(straightened.steps(8).empty()) << "three units of four elements exceed a slot";
}

// A straight program on hosts of 8 ranks, whose staging ring has 6 positions.
StraightProgram staged_over_hosts(Collective collective, const char* algorithm, Rank hosts, std::uint64_t count) {
  const Problem problem = {.collective = collective, .ranks = hosts * 8, .groups = {std::vector<Rank>(hosts, 8)}};
  Plan plan = emit_plan(*find(collective, algorithm), problem, 2);
  fuse(plan);
  Straightened straightened(plan);
  straightened.change_lanes([](LaneView& view) {
    view.protocol = Protocol::simple;
    view.slot_shift = 3;
  });
  straightened.launch.slice_elements = 10000;
  straightened.launch.loop = {.chunks = 8, .skew = 1, .ring = 6};
  return straightened.program(count);
}

// A lane inside a host has more messages per chunk than slots, so that only those of a round are awaited at once.
TEST(StraightenUnits, ReceiveAllMessagesOfRounds) {
  const Problem problem = {.collective = Collective::all_gather, .ranks = 32, .groups = {{8, 8, 8, 8}}};
  Plan plan = emit_plan(*find(problem.collective, "hierarchical"), problem, 2);
  fuse(plan);
  Straightened straightened(plan);
  straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
  straightened.launch.loop = {.chunks = 8, .skew = 1};
  EXPECT_EQ(straightened.steps(64).size(), 32U);
  straightened.options.rounds = true;
  const std::vector<StraightStep> steps = straightened.steps(64);
  ASSERT_EQ(steps.size(), 8U);
  EXPECT_EQ(steps[0].sends, 3U + 7) << "to the other hosts and in this host";
  for (const std::size_t s : {1U, 3U, 5U}) EXPECT_EQ(steps[s].sends, 7U) << s;
  for (const std::size_t s : {2U, 4U, 6U, 7U}) EXPECT_EQ(steps[s].receives, 7U) << s;
}

TEST(StraightenUnits, SendMessagesOfOneRoundAtOnce) {
  Steps steps(0);
  for (const std::uint16_t tag : {0, 1, 2, 3, 4, 4}) steps.send(input(tag % 4), 1, tag);
  Plan plan = plan_of(steps, 4);
  plan.shape.rounds = 2;
  plan.rounds = {0, 3, 6};
  Straightened straightened(plan);
  straightened.change_lanes([](LaneView& view) {
    view.protocol = Protocol::simple;
    view.slot_shift = 0;
  });
  straightened.options.rounds = true;
  std::vector<std::uint16_t> sends;
  for (const StraightStep& step : straightened.steps(16)) sends.push_back(step.sends);
  EXPECT_EQ(sends, (std::vector<std::uint16_t>{3, 2, 1}));
}

// A rank adds its shard, cut into a unit for each host, from the messages of its host, and halves it between hosts.
TEST(StraightenUnits, FoldsEachUnitOfMessages) {
  const Problem problem = {.collective = Collective::all_reduce, .ranks = 8, .groups = {{4, 4}}};
  Plan plan = emit_plan(*find(problem.collective, "hierarchical"), problem, 1);
  fuse(plan);
  Straightened straightened(plan);
  straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
  straightened.launch.loop.chunks = 2;
  const StraightProgram program = straightened.program(64);
  const auto found = std::ranges::find_if(program.steps, [](const StraightStep& step) { return step.folds > 1; });
  ASSERT_NE(found, program.steps.end());
  EXPECT_EQ(found->folds, 2);
  EXPECT_EQ(found->inputs, 4);
  EXPECT_EQ(found->receives, 3);
  EXPECT_EQ(found->count, 8U);
  EXPECT_EQ(found->size, 4U);
  std::vector<bool> sources(8), targets(std::size_t{2} * found->outputs);
  for (std::uint32_t k = 0; k < std::uint32_t{found->receives} + found->sends; ++k) {
    const StraightLane& lane = program.lanes[found->lanes + k];
    const bool source = k < found->receives;
    EXPECT_EQ(lane.units, 2);
    for (std::uint32_t unit = 0; unit < 2; ++unit)
      (source ? sources : targets)[lane.index + unit * (source ? found->inputs : found->outputs)] = true;
  }
  for (std::uint32_t k = 0; k < std::uint32_t{found->reads} + found->writes; ++k) {
    const StraightMemory& memory = program.memory[found->memory + k];
    (k < found->reads ? sources : targets)[memory.index] = true;
    const std::uint32_t fold = memory.index / (k < found->reads ? found->inputs : found->outputs);
    EXPECT_EQ(memory.offset, (2 + fold) * 32) << "shard 1";
  }
  EXPECT_EQ(sources, std::vector<bool>(sources.size(), true));
  EXPECT_EQ(targets, std::vector<bool>(targets.size(), true));
}

TEST(StraightenUnits, FoldUnitsOfOneLengthThatFitASlot) {
  Steps steps(0);
  const Operand sources[] = {lane(1, 2), input(2, 2)}, target = output(2, 2);
  steps.add(sources, {&target, 1});
  Straightened straightened(plan_of(steps, 4));
  straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
  straightened.launch.loop.chunks = 2;  // Units are apart.
  straightened.launch.slice_elements = 4;
  EXPECT_EQ(straightened.steps(16).size(), 1U);
  EXPECT_TRUE(straightened.steps(14).empty()) << "units of three and four elements";
  straightened.launch.slice_elements = 3;
  EXPECT_TRUE(straightened.steps(16).empty()) << "two units of two elements";
}

// Folds run in any order, so that none reads what another one writes.
TEST(StraightenUnits, FoldNoUnitsThatOthersWrite) {
  const auto is_straight = [](const Operand& source, const Operand& target) {
    Steps steps(0);
    const Operand sources[] = {lane(1, 2), source};
    steps.add(sources, {&target, 1});
    Straightened straightened(plan_of(steps, 4));
    straightened.change_lanes([](LaneView& view) { view.protocol = Protocol::simple; });
    straightened.launch.loop.chunks = 2;  // Units are apart.
    return !straightened.steps(16).empty();
  };
  EXPECT_TRUE(is_straight(input(1, 2), output(1, 2)));
  EXPECT_FALSE(is_straight(input(1, 2), output(0, 2))) << "unit 1, if output is input";
  EXPECT_TRUE(is_straight(input(0, 2), output(2, 2)));
  EXPECT_TRUE(is_straight(scratch(1, 2), output(0, 2)));
  EXPECT_FALSE(is_straight(scratch(1, 2), scratch(2, 2)));
}

// With LL, each operand of a step has a staging buffer.
TEST(StraightenUnits, FoldNoUnitsBesideLl) {
  for (const Protocol protocol : {Protocol::simple, Protocol::ll}) {
    Steps steps(0);
    const Operand sources[] = {input(0, 2), scratch(0, 2)}, target = output(0, 2);
    steps.add(sources, {&target, 1});
    steps.send(input(0), 1);
    Straightened straightened(plan_of(steps, 4));
    straightened.change_lanes([&](LaneView& view) { view.protocol = protocol; });
    straightened.launch.loop.chunks = 2;
    EXPECT_EQ(straightened.steps(16).empty(), protocol == Protocol::ll);
  }
}

// The interpreter would run each unit by itself.
TEST(StraightenUnits, CollectsBlocksOfHostsInFewSteps) {
  for (const Rank hosts : {2, 8, 64}) {
    const StraightProgram program = staged_over_hosts(Collective::all_to_all, "host_staged", hosts, 64);
    ASSERT_EQ(program.steps.size(), 5U) << hosts;
    EXPECT_EQ(program.steps[1].inputs, hosts * 8) << "stores";
    EXPECT_EQ(program.steps[3].sends, hosts - 1);
    EXPECT_EQ(program.steps[4].receives, hosts - 1);
  }
}

// Stages: copy the input to scratch; add by switches; between hosts; store by switches; copy the sum to the output.
TEST(StraightenUnits, AddsUnitsOfHostsBySwitchesInOneStep) {
  for (const Rank hosts : {2, 8}) {
    const StraightProgram program = staged_over_hosts(Collective::all_reduce, "host_staged", hosts, 6400);
    ASSERT_EQ(program.steps.size(), 7U) << hosts;
    const auto expect = [&](std::size_t s, Fold fold, std::size_t units, std::size_t receives, std::size_t sends) {
      const StraightStep& step = program.steps[s];
      EXPECT_EQ(step.fold, fold) << s;
      EXPECT_EQ(step.inputs, units) << s;
      EXPECT_EQ(step.outputs, units) << s;
      EXPECT_EQ(step.receives, receives) << s;
      EXPECT_EQ(step.sends, sends) << s;
    };
    for (const std::size_t s : {0U, 1U, 5U, 6U}) EXPECT_TRUE(program.steps[s].copies) << s;
    expect(0, Fold::partial, 8 * hosts, 0, 7);
    expect(1, Fold::partial_from_all, hosts, 7, 0);
    expect(2, Fold::partial, hosts - 1, 0, hosts - 1);
    expect(5, Fold::to_all, hosts, 0, 7);
    expect(6, Fold::partial, 7 * hosts, 7, 0);
  }
  EXPECT_EQ(staged_over_hosts(Collective::all_reduce, "tree_staged", 8, 6400).steps.size(), 6U);
}

// The first step awaits the flags, and the last signals. Steps of a stage that copy units of a length are one.
TEST(StraightenUnits, HaveAStepForEachLength) {
  for (const Rank hosts : {2, 3}) {
    const StraightProgram program = staged_over_hosts(Collective::all_reduce, "host_staged", hosts, 6413);
    ASSERT_EQ(program.stages.size(), 6U);
    for (const std::size_t stage : {0U, 4U}) {
      const std::size_t first = program.stages[stage];
      ASSERT_EQ(program.stages[stage + 1], first + 2) << "two lengths";
      const StraightStep &one = program.steps[first], &other = program.steps[first + 1];
      EXPECT_NE(one.count, other.count);
      EXPECT_EQ(one.inputs + other.inputs, (stage == 0 ? 8U : 7U) * hosts);
      for (const StraightStep* step : {&one, &other}) {
        for (std::uint32_t k = 0; k < step->inputs; ++k) {
          const StraightMemory &read = program.memory[step->memory + k],
                               &write = program.memory[step->memory + step->reads + k];
          EXPECT_EQ(read.index, k);
          EXPECT_EQ(write.index, k);
          EXPECT_EQ(read.reused, stage == 4);
          EXPECT_EQ(write.reused, stage == 0);
        }
      }
    }
    EXPECT_EQ(program.steps[0].sends, 0U);
    EXPECT_EQ(program.steps[1].sends, 7U);
    EXPECT_EQ(program.steps[2].receives, 7U);
    EXPECT_EQ(program.steps[program.stages[4]].receives, 7U);
    EXPECT_EQ(program.steps[program.stages[4] + 1].receives, 0U);
  }
}

// Copies before a step that awaits flags do not depend on them, those after it may.
TEST(StraightenUnits, JoinNoCopiesBeforeFlags) {
  Steps steps(0);
  steps.copy(input(0), scratch(0));
  const Operand sources[] = {flag(1), input(3)}, target = scratch(3);
  steps.add(sources, {&target, 1});
  steps.copy(input(1), scratch(1));
  Straightened straightened(plan_of(steps, 4));
  const auto sizes = [&](std::uint64_t count) {
    std::vector<std::uint64_t> found;
    for (const StraightStep& step : straightened.steps(count)) found.push_back(step.inputs);
    return found;
  };
  EXPECT_EQ(sizes(8), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(sizes(9), (std::vector<std::uint64_t>{1, 1, 1})) << "the last unit is longer";
}

// Averages divide complete sums only. Steps that change elements are folds.
TEST(StraightenUnits, CopiesUnitsOfAverages) {
  Steps steps(0);
  steps.copy(input(0, 3), scratch(0, 3));
  Straightened copied(plan_of(steps, 4));
  copied.launch.loop.chunks = 2;
  copied.options = {.divides = true, .together = true};
  const auto expect = [](Straightened& straightened, bool copies) {
    const std::vector<StraightStep> made = straightened.steps(16);
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].copies, copies);
    EXPECT_EQ(made[0].folds, copies ? 1 : 3);
    EXPECT_EQ(made[0].inputs, copies ? 3 : 1);
  };
  expect(copied, true);
  copied.options.divides = false;  // The input is scaled.
  expect(copied, false);
  const Operand source = input(0, 3), target = scratch(0, 3);
  Steps complete(0);
  complete.add({&source, 1}, {&target, 1}, Fold::complete);
  Straightened divided(plan_of(complete, 4));
  divided.launch.loop.chunks = 2;
  divided.options = {.divides = true, .together = true};
  expect(divided, false);
}

// Such copies run at the same time, so they must not overlap. With LL, each operand has a staging buffer.
TEST(StraightenUnits, CopiesUnitsOnlyToOrFromScratch_AndNotManyBesideLl) {
  const auto is_straight = [](const Operand& from, const Operand& to, Protocol protocol = Protocol::simple) {
    Steps steps(0);
    steps.copy(from, to);
    steps.send(input(0), 1);
    Straightened straightened(plan_of(steps, 4));
    straightened.launch.loop.chunks = 2;
    return !straightened.change_lanes([&](LaneView& view) { view.protocol = protocol; }).steps(16).empty();
  };
  EXPECT_TRUE(is_straight(input(0, 3), scratch(0, 3)));
  EXPECT_TRUE(is_straight(scratch(0, 3), output(1, 3)));
  EXPECT_FALSE(is_straight(input(0, 3), output(1, 3))) << "input and output may be the same";
  EXPECT_FALSE(is_straight(scratch(0, 3), scratch(1, 3)));
  EXPECT_FALSE(is_straight(input(0, 3), scratch(0, 3), Protocol::ll));
}

// With LL, each operand of a step has a staging buffer, so that steps stay as wide as those of the plan.
TEST(StraightenUnits, JoinsNoCopiesBesideLl) {
  const auto count = [](Protocol protocol) {
    Steps steps(0);
    for (std::uint32_t k = 0; k < 3; ++k) steps.copy(input(k), scratch(k));
    steps.send(input(0), 1);
    Straightened straightened(plan_of(steps, 4));
    return straightened.change_lanes([&](LaneView& view) { view.protocol = protocol; }).steps(16).size();
  };
  EXPECT_EQ(count(Protocol::simple), 2U);
  EXPECT_EQ(count(Protocol::ll), 4U);
}

}  // namespace
}  // namespace tutti::test
