#include "src/plan/lanes.h"

#include <gtest/gtest.h>

#include "src/plan/fuse.h"
#include "tests/plan/samples.h"

namespace tutti {
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

TEST(Lanes, OfAFusedTwoShotMakeRoundTrips) {
  for (const Rank ranks : {2u, 3u, 7u}) {
    const std::vector<Plan> plans = fused(kTwoShot, ranks);
    for (Rank self = 0; self < ranks; ++self) {
      const std::vector<LaneUse> uses = lanes_of(plans, self, {.pieces = 9, .skew = 1});
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

TEST(Lanes, OfOneTagForBothWaysMakeNone) {
  for (const LaneUse& use : lanes_of(fused(kTwoShotOfOneTag, 3), 0, {.pieces = 9, .skew = 1})) {
    EXPECT_EQ(use.form, LaneForm::one_way);
  }
}

TEST(Lanes, OfAnUnfusedTwoShotMakeNoRoundTrip) {
  for (const LaneUse& use : lanes_of(emit_plans(kTwoShot, problem(Collective::all_reduce, 3)), 0)) {
    EXPECT_NE(use.form, LaneForm::round_trip);
  }
}

TEST(Lanes, OfAOneShotSwap) {
  const std::vector<Plan> plans = emit_plans(OneShot(), problem(Collective::all_reduce, 2));
  for (Rank self = 0; self < 2; ++self) {
    for (const LaneUse& use : lanes_of(plans, self)) EXPECT_EQ(use.form, LaneForm::swap);
  }
}

TEST(Lanes, ThatOverlapPiecesSwapOnlyWithASlotForEach) {
  const std::vector<Plan> plans = emit_plans(DirectAllGather(), problem(Collective::all_gather, 2));
  for (const std::uint32_t skew : {1U, 3U}) {
    Loop loop{.pieces = 8, .skew = skew, .order = StageOrder::earliest_first, .slots = skew};
    for (const LaneUse& use : lanes_of(plans, 0, loop)) EXPECT_EQ(use.form, LaneForm::one_way) << skew;
    loop.slots = skew + 1;
    for (const LaneUse& use : lanes_of(plans, 0, loop)) EXPECT_EQ(use.form, LaneForm::swap) << skew;
  }
}

TEST(Lanes, OfARingAreOneWay) {
  const std::vector<Plan> plans = emit_plans(kRing, problem(Collective::all_reduce, 5));
  const std::vector<LaneUse> uses = lanes_of(plans, 2);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].peer, 1u);
  EXPECT_EQ(uses[0].direction, Direction::receives);
  EXPECT_EQ(uses[1].messages, 8u);
  EXPECT_EQ(uses[1].form, LaneForm::one_way);
}

TEST(Lanes, HaveTheSameFormAtBothEnds) {
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
}  // namespace tutti
