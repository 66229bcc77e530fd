// Which steps of a straight program run as one on a GPU.
#include "src/executor/straighten.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "algorithms/catalogue.h"
#include "src/executor/compiled_plan.h"
#include "src/plan/fuse.h"

namespace tutti::test {
namespace {

// A plan on one_way lanes of LL messages, unless a test changes them.
class Straightened {
 public:
  explicit Straightened(const Plan& plan)
      : compiled_(plan, [this](const Operand& operand, bool sends) {
          LaneState& end = ends_[{operand.peer, operand.tag, sends}];
          end.view.protocol = Protocol::ll;
          end.view.slot_shift = 2;
          return &end;
        }) {
    launch.element_bytes = 4;
    launch.slice_elements = 1000;
    launch.loop.chunks = 1;
  }

  template <typename Change>
  Straightened& change_lanes(Change&& change) {
    for (auto& [name, end] : ends_) change(end.view);
    return *this;
  }

  std::vector<StraightStep> steps(std::uint64_t count, bool together = true) {
    launch.input.count = launch.output.count = launch.scratch_blocks.count = count;
    launch.cut = {.units = compiled_.program().units, .parts = launch.loop.chunks, .granule = 1};
    return straighten(compiled_.program(), launch, {.copies = true, .together = together}).steps;
  }

  Launch launch;

 private:
  std::map<std::tuple<Rank, std::uint16_t, bool>, LaneState> ends_;
  CompiledPlan compiled_;
};

Plan two_shot() {
  const Problem problem = {.collective = Collective::all_reduce, .ranks = 8, .groups = {}};
  std::vector<Plan> plans = emit_plans(*find(problem.collective, "two_shot"), problem);
  for (Plan& plan : plans) fuse(plan);
  fuse_stages(plans);
  return plans[3];
}

Plan plan_of(const Steps& steps, std::uint32_t units) {
  Plan plan;
  plan.problem.ranks = 3;
  plan.shape = {.units = units, .scratch = 0, .rounds = 1, .stages = {0}};
  plan.steps = steps;
  plan.rounds = {0, static_cast<std::uint32_t>(steps.size())};
  return plan;
}

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

// Lanes have four slots, and a message per chunk. With more chunks, messages may wait for those that a joined step
// delays.
TEST(Straighten, JoinsMessagesOfChunks_WhileLanesHaveSlotsForAll) {
  Straightened straightened(two_shot());
  straightened.launch.loop.skew = 1;
  for (const auto& [chunks, steps] : {std::pair(1U, 3U), {2U, 3U}, {4U, 3U}, {5U, 15U}, {~0U, 15U}}) {
    straightened.launch.loop.chunks = chunks;
    EXPECT_EQ(straightened.steps(80).size(), steps) << chunks;
  }
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

}  // namespace
}  // namespace tutti::test
