// Every algorithm of the catalogue as voyages of all shapes: what tests of interpreters have in common.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdio>

#include "src/plan/lanes.h"
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/executor/fleet.h"

namespace tutti::test {

// One shape of call, and the least slots with which it goes.
struct VoyageShape {
  const char* name;
  Loop loop;
  std::uint64_t count;
};

class CatalogueVoyages : public testing::TestWithParam<cases::Entry> {
 protected:
  static constexpr std::uint64_t kSeed = 20261121;
  static constexpr std::uint32_t kGranule = 4;
  static constexpr std::uint32_t kPieces = 5;

  static void SetUpTestSuite() { std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }

  // Plans for ranks in place and out of place; false if the algorithm does not do it.
  bool emit(Rank ranks, Rank root) {
    for (const bool in_place : {false, true}) {
      const Problem problem{
          .collective = GetParam().collective, .ranks = ranks, .root = root, .in_place = in_place, .groups = {}};
      voyage_.plans[in_place ? 1 : 0].clear();
      if (!GetParam().algorithm->supports(problem)) continue;
      voyage_.plans[in_place ? 1 : 0] =
          cases::fused(emit_plans(*GetParam().algorithm, problem), cases::Fusion::whole_stages);
    }
    return !voyage_.plans[0].empty();
  }

  // One element; some that fit a slot; pieces that overlap; messages in slices.
  std::vector<VoyageShape> shapes() {
    const std::uint64_t slot = slot_elements(voyage_);
    const std::uint64_t units = voyage_.plans[0][0].shape.units;
    const std::uint64_t longest = longest_message(voyage_.plans[0]);
    if (longest == 0) return {{"one element", {}, 1}, {"some elements", {}, 1 + random_() % 40}};
    const std::uint64_t room = std::max<std::uint64_t>(slot / longest / kGranule, 1) * kGranule;  // Of a unit's part.
    const bool scratch = voyage_.plans[0][0].shape.scratch > 0;
    const std::uint32_t skew = scratch ? 0 : 1;
    const Loop earliest{.pieces = kPieces, .skew = skew, .order = StageOrder::earliest_first};
    return {{"one element", {}, 1},
            {"some elements", {}, 1 + random_() % (slot / longest * units)},
            {"pieces, earliest stage first", earliest, units * (kPieces * room - 3) + units / 2},
            {"pieces, latest stage first", {.pieces = 3, .skew = skew}, units * (2 * room + 1)},
            {"slices", {.longest = 3}, std::max(units * 3 * slot / longest, units) - units / 2}};
  }

  void sail(const VoyageShape& shape) {
    voyage_.loop = shape.loop;
    voyage_.loop.slots = kMaxSlots / 2;
    const auto proof = verify(voyage_.plans[0], voyage_.loop);
    ASSERT_TRUE(proof.ok());
    if (!suffices(proof.value(), voyage_.loop)) {
      ASSERT_GT(shape.loop.longest, 1U);  // Slices of an unbalanced plan.
      return;
    }
    voyage_.count = shape.count;
    voyage_.granule = kGranule;
    // As few slots as are proved to do, and as many as the lanes of a communicator have.
    const std::uint32_t fewest = std::bit_ceil(proof.value().slots);
    judge(shape, fewest, Forms::as_proved);
    judge(shape, fewest, Forms::one_way);
    if (fewest < 4) judge(shape, 4, Forms::as_proved);
  }

  void judge(const VoyageShape& shape, std::uint32_t slots, Forms forms) {
    voyage_.forms = forms;
    voyage_.loop.slots = slots;
    voyage_.way = voyage_.plans[1].empty() ? Way::out_of_place : static_cast<Way>(random_() % 3);
    voyage_.averages = reduces(GetParam().collective) && random_() % 2 == 0;
    voyage_.straight = random_() % 2 == 0;
    voyage_.channels = voyage_.engine != nullptr ? 1 + random_() % 2 : 1;
    ASSERT_EQ(fleet_.run(voyage_), "") << describe(voyage_.plans[0][0].problem) << ", " << shape.name << ", " << slots
                                       << " slots, way " << int(voyage_.way) << ", forms " << int(forms)
                                       << ", protocol " << int(voyage_.protocol) << ", " << voyage_.channels
                                       << " channels, " << voyage_.count << " elements, seed " << kSeed;
  }

  std::mt19937_64 random_{kSeed};
  Fleet fleet_{kSeed};
  Voyage voyage_;
};

}  // namespace tutti::test
