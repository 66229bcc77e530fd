// Number of slots of lanes.
#include "src/communicator/planning/lane_specs.h"

#include <gtest/gtest.h>

#include "src/communicator/host/connected_plans.h"

namespace tutti::test {
namespace {

std::uint32_t slots(LaneForm form, Slots wanted) {
  return 1U << spec_of({.peer = 1, .form = form}, 0, Protocol::simple, wanted).slot_shift;
}

TEST(LaneSpecs, HaveSlotsThatProofsAssume) {
  for (const LaneForm form : {LaneForm::one_way, LaneForm::round_trip, LaneForm::swap}) {
    EXPECT_EQ(slots(form, Slots::one), 1U);
    EXPECT_EQ(slots(form, Slots::several), kSimpleSlots);
    EXPECT_GT(slots(form, Slots::max), kSimpleSlots);
  }
}

// Lanes of a pair and tag with different numbers of slots are different lanes.
TEST(LaneSpecs, DifferByTheirSlots) {
  const LaneUse use = {.peer = 1};
  EXPECT_NE(spec_of(use, 0, Protocol::simple, Slots::several), spec_of(use, 0, Protocol::simple, Slots::max));
}

}  // namespace
}  // namespace tutti::test
