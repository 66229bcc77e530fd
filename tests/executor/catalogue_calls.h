// Calls of every algorithm of the catalogue in several shapes, for tests of interpreters.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdio>

#include "src/plan/lanes.h"
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"
#include "tests/base/case_sampling.h"
#include "tests/executor/threaded_ranks.h"

namespace tutti::test {

// Loop and size of a call.
struct TestCallShape {
  const char* name;
  Loop loop;
  std::uint64_t count;
};

class CatalogueCalls : public testing::TestWithParam<cases::Entry> {
 protected:
  static constexpr std::uint64_t kSeed = 20261121;
  static constexpr std::uint32_t kGranule = 4;
  static constexpr std::uint32_t kChunks = 5;

  static void SetUpTestSuite() { std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }

  // Emits the plans out of place and in place. Returns false if the algorithm does not support the problem.
  bool emit(Rank ranks, Rank root) {
    for (const bool in_place : {false, true}) {
      Problem problem{
          .collective = GetParam().collective, .ranks = ranks, .root = root, .in_place = in_place, .groups = {}};
      if (per_host_ > 0) problem.groups.emplace_back(ranks / per_host_, per_host_);
      test_call_.plans[in_place ? 1 : 0].clear();
      if (!GetParam().algorithm->supports(problem)) continue;
      test_call_.plans[in_place ? 1 : 0] =
          cases::fused(emit_plans(*GetParam().algorithm, problem), cases::Fusion::whole_stages);
      for (Plan& plan : test_call_.plans[in_place ? 1 : 0]) expand_all_ranks(plan);
    }
    return !test_call_.plans[0].empty();
  }

  // Returns these shapes: one element; elements that fit a slot; overlapping chunks; messages in slices.
  std::vector<TestCallShape> shapes() {
    const std::uint64_t slot = slot_elements(test_call_);
    const std::uint64_t units = test_call_.plans[0][0].shape.units;
    const std::uint64_t longest = longest_message(test_call_.plans[0]);
    // Elements of a unit in a chunk.
    const std::uint64_t room =
        longest == 0 ? 2 * kGranule : std::max<std::uint64_t>(slot / longest / kGranule, 1) * kGranule;
    const Loop earliest = reusing({.chunks = kChunks, .skew = 1, .order = StageOrder::earliest_first});
    const Loop latest = reusing({.chunks = 4, .skew = 1});
    std::vector<TestCallShape> shapes = {
        {"one element", {}, 1},
        {"some elements", {}, 1 + random_() % (longest == 0 ? 40 : slot / longest * units)},
        {"chunks, earliest stage first", earliest, units * (kChunks * room - 3) + units / 2},
        {"chunks, latest stage first", latest, units * (3 * room + 1)}};
    if (longest > 0)
      shapes.push_back({"slices", {.longest = 3}, std::max(units * 3 * slot / longest, units) - units / 2});
    if (per_host_ > 0) shapes.push_back({"units of one length", earliest, units * (kChunks * room - 3)});
    return shapes;
  }

  // Adds the least ring with which the verifier accepts the plans.
  Loop reusing(Loop loop) {
    loop.ring = min_ring(test_call_.plans[0], loop);
    return loop;
  }

  void run(const TestCallShape& shape) {
    test_call_.loop = shape.loop;
    test_call_.loop.slots = kMaxSlots / 2;
    const auto proof = verify(test_call_.plans[0], test_call_.loop);
    ASSERT_TRUE(proof.ok());
    if (!suffices(proof.value(), test_call_.loop)) {
      ASSERT_GT(shape.loop.longest, 1U);  // Only slices of an unbalanced plan may lack slots.
      return;
    }
    test_call_.count = shape.count;
    test_call_.granule = kGranule;
    // Run with the minimum number of slots according to the verifier, and with the number that communicators use.
    const std::uint32_t fewest = std::bit_ceil(proof.value().slots);
    judge(shape, fewest, Forms::as_proved);
    judge(shape, fewest, Forms::one_way);
    if (fewest < 4) judge(shape, 4, Forms::as_proved);
  }

  void judge(const TestCallShape& shape, std::uint32_t slots, Forms forms) {
    if (!sample_.takes()) return;
    test_call_.forms = forms;
    test_call_.loop.slots = slots;
    test_call_.in_place =
        test_call_.plans[1].empty() ? InPlaceUse::out_of_place : static_cast<InPlaceUse>(random_() % 3);
    test_call_.averages = reduces(GetParam().collective) && random_() % 2 == 0;
    test_call_.straight = random_() % 2 == 0;
    test_call_.channels = test_call_.engine != nullptr ? 1 + random_() % 2 : 1;
    ASSERT_EQ(ranks_.run(test_call_), "")
        << describe(test_call_.plans[0][0].problem) << ", " << shape.name << ", " << slots << " slots, in place "
        << int(test_call_.in_place) << ", forms " << int(forms) << ", protocol " << int(test_call_.protocol) << ", "
        << test_call_.channels << " channels, " << test_call_.count << " elements, seed " << kSeed;
  }

  Rank per_host_ = 0;  // Ranks per host; 0: there is one host.
  std::mt19937_64 random_{kSeed};
  ThreadedRanks ranks_{kSeed};
  TestCall test_call_;
  OneOf sample_{3, cases::title(GetParam()).size()};  // Samples of algorithms begin elsewhere.
};

}  // namespace tutti::test
