#include "src/plan/lanes.h"

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
const AllReduce kTwoShot(kDirectReduceScatter, kDirectAllGather, 1);
const AllReduce kTwoShotOfOneTag(kDirectReduceScatter, kDirectAllGather);
const AllReduce kRing(kRingReduceScatter, kRingAllGather);

std::vector<Plan> fused(const Algorithm& algorithm, Rank ranks) {
  std::vector<Plan> plans = emit_plans(algorithm, problem(Collective::all_reduce, ranks));
  for (Plan& plan : plans) fuse(plan);
  fuse_stages(plans);
  return plans;
}

TEST(Lanes, UseRoundTrips_InFusedTwoShot) {
  for (const Rank ranks : {2u, 3u, 7u}) {
    const std::vector<Plan> plans = fused(kTwoShot, ranks);
    for (Rank self = 0; self < ranks; ++self) {
      const std::vector<LaneUse> uses = lanes_of(plans, self, {.chunks = 9, .skew = 1, .slots = 2});
      EXPECT_EQ(uses.size(), 4 * (ranks - 1));
      for (const LaneUse& use : uses) {
        EXPECT_EQ(use.form, LaneForm::round_trip);
        EXPECT_EQ(use.answers, use.tag == 1);
        EXPECT_EQ(use.partner_tag, 1 - use.tag);
        EXPECT_EQ(use.messages, 1u);
        const bool first_stage = use.tag == 0 && use.direction == Direction::sends;
        const bool last_stage = use.tag == 1 && use.direction == Direction::receives;
        EXPECT_EQ(use.stage, first_stage ? 0u : last_stage ? 2u : 1u);
      }
    }
  }
}

// A round trip needs a slot for each chunk that the requester sends ahead of the answers. A loop that fills before it
// drains has one more chunk in flight.
TEST(Lanes, UseRoundTrips_OnlyWithSlotForEachMessageInFlight) {
  struct Border {
    Loop loop;
    std::uint32_t slots;  // Exactly enough.
  };
  const Border borders[] = {{{.chunks = 1}, 1},
                            {{.chunks = 9}, 1},
                            {{.chunks = 2, .skew = 1, .order = StageOrder::earliest_first}, 2},
                            {{.chunks = 9, .skew = 1, .order = StageOrder::earliest_first}, 3},
                            {{.chunks = 9, .skew = 2, .order = StageOrder::earliest_first}, 5},
                            {{.chunks = 9, .skew = 2}, 4},
                            {{.chunks = 9, .skew = 1, .order = StageOrder::earliest_first, .longest = 2}, 6}};
  for (const Border& border : borders) {
    for (const Rank ranks : {2U, 3U}) {
      SCOPED_TRACE("skew " + std::to_string(border.loop.skew) + " slots " + std::to_string(border.slots));
      const std::vector<Plan> plans = fused(kTwoShot, ranks);
      Loop loop = border.loop;
      loop.slots = border.slots;
      for (const LaneUse& use : lanes_of(plans, 0, loop)) EXPECT_EQ(use.form, LaneForm::round_trip);
      --loop.slots;
      for (const LaneUse& use : lanes_of(plans, 0, loop)) EXPECT_EQ(use.form, LaneForm::one_way);
    }
  }
}

// Plans of two ranks, written by hand.
std::vector<Plan> by_hand(std::uint32_t units, void (*write)(Steps& steps)) {
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < 2; ++rank) {
    Plan plan;
    plan.problem = problem(Collective::all_reduce, 2);
    plan.shape.units = units;
    plan.shape.rounds = 1;
    plan.shape.stages.push_back(0);
    plan.steps = Steps(rank);
    plan.rounds.push_back(0);
    write(plan.steps);
    plan.rounds.push_back(static_cast<std::uint32_t>(plan.steps.size()));
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<LaneForm> forms(const std::vector<LaneUse>& uses) {
  std::vector<LaneForm> result;
  for (const LaneUse& use : uses) result.push_back(use.form);
  return result;
}

// Rank 1 answers rank 0, and rank 0 answers the answer: the lane from rank 1 would belong to two pairs.
TEST(Lanes, UseNoRoundTrip_WhenAnswerIsAnswered) {
  const auto write = [](Steps& steps) {
    if (steps.self() == 0) {
      steps.send(input(0), 1, 0);
      steps.fold({lane(1, 1, 1)}, {output(0), lane(1, 1, 2)});
    } else {
      steps.fold({lane(0, 1, 0)}, {output(0), lane(0, 1, 1)});
      steps.recv(0, output(0), 2);
    }
  };
  const std::vector<Plan> plans = by_hand(1, write);
  for (Rank self = 0; self < 2; ++self) {
    EXPECT_EQ(forms(lanes_of(plans, self, {.slots = 4})), std::vector<LaneForm>(3, LaneForm::one_way));
  }
}

// The lane with tag 0 to rank 1 makes round trips, so the lane with tag 0 to rank 0 must not swap with it.
TEST(Lanes, DoNotSwap_WhenUsedForRoundTrips) {
  const auto write = [](Steps& steps) {
    if (steps.self() == 0) {
      steps.send(input(0), 1, 0);
      steps.recv(1, output(0), 1);
      steps.recv(1, output(0), 0);
    } else {
      steps.fold({lane(0, 1, 0)}, {output(0), lane(0, 1, 1)});
      steps.send(output(0), 0, 0);
    }
  };
  const std::vector<Plan> plans = by_hand(1, write);
  for (const LaneUse& use : lanes_of(plans, 0, {.slots = 4})) {
    const bool back = use.tag == 0 && use.direction == Direction::receives;
    EXPECT_EQ(use.form, back ? LaneForm::one_way : LaneForm::round_trip);
  }
}

// With one element in two units, the first unit is empty and is not sent. One rank would then send on a lane without
// receiving on its partner.
TEST(Lanes, Swap_OnlyMessagesOfSameUnits) {
  const auto exchange = [](Steps& steps, std::uint32_t mine, std::uint32_t theirs) {
    steps.send(input(mine), 1 - steps.self());
    steps.recv(1 - steps.self(), output(theirs));
  };
  static const auto write = exchange;
  const auto same = [](Steps& steps) { write(steps, 1, 1); };
  const auto different = [](Steps& steps) { write(steps, steps.self(), 1 - steps.self()); };
  for (const LaneUse& use : lanes_of(by_hand(2, same), 0)) EXPECT_EQ(use.form, LaneForm::swap);
  for (const LaneUse& use : lanes_of(by_hand(2, different), 0)) EXPECT_EQ(use.form, LaneForm::one_way);
}

// Rank 1 receives from rank 0 before it sends.
TEST(Lanes, Swap_WhenOneRankReceivesFirst) {
  const auto write = [](Steps& steps) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (steps.self() == 1) steps.recv(0, output(0));
      steps.send(input(0), 1 - steps.self());
      if (steps.self() == 0) steps.recv(1, output(0));
    }
  };
  const std::vector<Plan> plans = by_hand(1, write);
  for (Rank self = 0; self < 2; ++self) {
    EXPECT_EQ(forms(lanes_of(plans, self)), std::vector<LaneForm>(2, LaneForm::swap));
  }
}

TEST(Lanes, KnowLongestMessageOfAllRanks) {
  EXPECT_EQ(longest_message(emit_plans(kRing, problem(Collective::all_reduce, 5))), 1U);
  EXPECT_EQ(longest_message(emit_plans(OneShot(), problem(Collective::all_reduce, 1))), 0U);  // No lanes, no slots.
  EXPECT_EQ(longest_message(by_hand(4,
                                    [](Steps& steps) {
                                      const Rank peer = 1 - steps.self();
                                      steps.send(input(0, 3 - 2 * steps.self()), peer);
                                      steps.recv(peer, output(0, 3 - 2 * peer));
                                    })),
            3U);
  EXPECT_EQ(longest_message(by_hand(4,
                                    [](Steps& steps) {
                                      const Rank peer = 1 - steps.self();
                                      if (peer == 0)
                                        steps.copy(input(0, 4), output(0, 4));  // Cut like the messages of its round.
                                      steps.send(input(0), peer);
                                      steps.recv(peer, output(0));
                                    })),
            4U);
}

TEST(Lanes, UseNoRoundTrip_WithOneTagForBothDirections) {
  for (const LaneUse& use : lanes_of(fused(kTwoShotOfOneTag, 3), 0, {.chunks = 9, .skew = 1})) {
    EXPECT_EQ(use.form, LaneForm::one_way);
  }
}

TEST(Lanes, UseNoRoundTrip_InUnfusedTwoShot) {
  for (const LaneUse& use : lanes_of(emit_plans(kTwoShot, problem(Collective::all_reduce, 3)), 0)) {
    EXPECT_NE(use.form, LaneForm::round_trip);
  }
}

TEST(Lanes, Swap_InOneShot) {
  const std::vector<Plan> plans = emit_plans(OneShot(), problem(Collective::all_reduce, 2));
  for (Rank self = 0; self < 2; ++self) {
    for (const LaneUse& use : lanes_of(plans, self)) EXPECT_EQ(use.form, LaneForm::swap);
  }
}

TEST(Lanes, SwapOverlappingChunks_OnlyWithSlotForEach) {
  const std::vector<Plan> plans = emit_plans(DirectAllGather(), problem(Collective::all_gather, 2));
  for (const std::uint32_t skew : {1U, 3U}) {
    Loop loop{.chunks = 8, .skew = skew, .order = StageOrder::earliest_first, .slots = skew};
    for (const LaneUse& use : lanes_of(plans, 0, loop)) EXPECT_EQ(use.form, LaneForm::one_way) << skew;
    loop.slots = skew + 1;
    for (const LaneUse& use : lanes_of(plans, 0, loop)) EXPECT_EQ(use.form, LaneForm::swap) << skew;
  }
}

TEST(Lanes, AreOneWay_InRing) {
  const std::vector<Plan> plans = emit_plans(kRing, problem(Collective::all_reduce, 5));
  const std::vector<LaneUse> uses = lanes_of(plans, 2);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].peer, 1u);
  EXPECT_EQ(uses[0].direction, Direction::receives);
  EXPECT_EQ(uses[1].messages, 8u);
  EXPECT_EQ(uses[1].form, LaneForm::one_way);
}

TEST(Lanes, HaveSameFormAtBothEnds) {
  for (const Algorithm* algorithm : {static_cast<const Algorithm*>(&kTwoShot), static_cast<const Algorithm*>(&kRing)}) {
    const std::vector<Plan> plans = fused(*algorithm, 4);
    for (const LaneUse& use : lanes_of(plans, 0)) {
      for (const LaneUse& other : lanes_of(plans, use.peer)) {
        if (other.peer == 0 && other.tag == use.tag && other.direction != use.direction) {
          EXPECT_EQ(other.form, use.form);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
