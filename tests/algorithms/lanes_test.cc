// Both ends of every lane of the catalogue must name it in the same way, since they lay out its memory by the name.
#include "src/plan/lanes.h"

#include <map>
#include <tuple>

#include "tests/algorithms/cases.h"

namespace tutti::test {
namespace {

// Two variants of a call: some ranks pass one buffer as input and output, others pass two.
struct BufferVariants {
  std::vector<Plan> plans[2];  // In place, or out of place if the algorithm supports nothing else.
};

BufferVariants plans_of_variants(const cases::Entry& entry, Rank ranks, Rank root) {
  BufferVariants result;
  for (const bool in_place : {false, true}) {
    Problem problem{.collective = entry.collective, .ranks = ranks, .root = root, .in_place = in_place, .groups = {}};
    if (in_place && !entry.algorithm->supports(problem)) problem.in_place = false;
    std::vector<Plan>& plans = result.plans[in_place ? 1 : 0];
    if (!entry.algorithm->supports(problem)) continue;
    plans = cases::fused(emit_plans(*entry.algorithm, problem), cases::Fusion::whole_stages);
  }
  return result;
}

// The properties on which the two ends of a lane must agree.
using Ends = std::map<std::tuple<Rank, Rank, std::uint32_t>, std::tuple<LaneForm, std::uint32_t, bool, std::uint32_t>>;

void add(const std::vector<LaneUse>& uses, Rank self, Direction direction, Ends& ends) {
  for (const LaneUse& use : uses) {
    if (use.direction != direction) continue;
    const bool sends = direction == Direction::sends;
    ends[{sends ? self : use.peer, sends ? use.peer : self, use.tag}] = {use.form, use.partner_tag, use.answers,
                                                                         use.messages};
  }
}

class LaneEnds : public testing::TestWithParam<cases::Entry> {};

TEST_P(LaneEnds, Agree_WhenOnlySomeRanksAreInPlace) {
  const Loop loops[] = {
      {},
      {.slots = 4},
      {.chunks = 8, .skew = 1, .order = StageOrder::earliest_first, .slots = 2},
      {.chunks = 8, .skew = 1, .order = StageOrder::earliest_first, .slots = 4},
      {.chunks = 8, .skew = 2, .slots = 4},
  };
  for (Rank ranks = 2; ranks <= 9; ++ranks) {
    for (const Rank root : {Rank{0}, ranks - 1}) {
      if (root > 0 && !has_root(GetParam().collective)) continue;
      const BufferVariants both = plans_of_variants(GetParam(), ranks, root);
      for (const Loop& loop : loops) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, skew " + std::to_string(loop.skew) + ", slots " +
                     std::to_string(loop.slots));
        Ends writers[2], readers[2];
        for (Rank self = 0; self < ranks; ++self) {
          for (const int variant : {0, 1}) {
            if (both.plans[variant].empty()) continue;
            const std::vector<LaneUse> uses = lanes_of(both.plans[variant], self, loop);
            add(uses, self, Direction::sends, writers[variant]);
            add(uses, self, Direction::receives, readers[variant]);
          }
        }
        EXPECT_EQ(writers[0], readers[0]);
        EXPECT_EQ(writers[1], readers[1]);
        EXPECT_EQ(writers[0], readers[1]);
      }
    }
  }
}

// A lane belongs to at most one pair, and its partner belongs to the same pair.
TEST_P(LaneEnds, HaveOnePartner) {
  for (Rank ranks = 2; ranks <= 9; ++ranks) {
    const BufferVariants both = plans_of_variants(GetParam(), ranks, 0);
    Ends ends;
    for (Rank self = 0; self < ranks; ++self) {
      const std::vector<LaneUse> uses = lanes_of(both.plans[0], self, {.slots = 4});
      add(uses, self, Direction::sends, ends);
    }
    for (const auto& [lane, end] : ends) {
      const auto& [form, partner_tag, answers, messages] = end;
      if (form == LaneForm::one_way) continue;
      const auto partner = ends.find({std::get<1>(lane), std::get<0>(lane), partner_tag});
      ASSERT_NE(partner, ends.end());
      const auto& [other_form, other_tag, other_answers, other_messages] = partner->second;
      EXPECT_EQ(other_form, form);
      EXPECT_EQ(other_tag, std::get<2>(lane));
      EXPECT_EQ(other_messages, messages);
      EXPECT_EQ(other_answers, form == LaneForm::round_trip && !answers);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LaneEnds, testing::ValuesIn(cases::flat_entries()), cases::title_of);

}  // namespace
}  // namespace tutti::test
