// Tags as devices renumber them.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/plan/verify.h"
#include "tests/algorithms/cases.h"

namespace tutti::test {
namespace {

// Tags of lanes and flags, by kind, writer and reader.
using Tags = std::map<std::tuple<Space, Rank, Rank>, std::set<std::uint16_t>>;

Tags tags_at(const std::vector<Plan>& plans, bool writers) {
  Tags tags;
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Operand& operand : writers ? plan.steps[i].targets : plan.steps[i].sources) {
        if (operand.is_memory()) continue;
        const Rank self = plan.steps.self();
        tags[{operand.space, writers ? self : operand.peer, writers ? operand.peer : self}].insert(operand.tag);
      }
    }
  }
  return tags;
}

// Both ends of a lane must get the same tag, and messages of different lanes must stay apart.
TEST(RenumberTags, KeepsPlansCorrect) {
  std::size_t changed = 0;
  for (const std::vector<Rank>& hosts : {std::vector<Rank>{2, 2}, {3, 1}, {4, 4, 4}, {2, 2, 2, 2, 2}}) {
    for (const cases::Entry& entry : cases::all_entries()) {
      const Rank ranks = std::accumulate(hosts.begin(), hosts.end(), Rank{0});
      const Problem problem{.collective = entry.collective, .ranks = ranks, .groups = {hosts}};
      if (!entry.algorithm->supports(problem)) continue;
      SCOPED_TRACE(cases::title(entry) + " of " + describe(problem));
      std::vector<Plan> plans = emit_plans(*entry.algorithm, problem);
      const Tags before = tags_at(plans, true);
      for (Plan& plan : plans) renumber_tags(plan);
      EXPECT_EQ(verify(plans).status().message(), "");
      const Tags written = tags_at(plans, true);
      EXPECT_EQ(written, tags_at(plans, false));
      changed += written == before ? 0 : 1;
      for (const auto& [lane, used] : written) {
        EXPECT_EQ(used.size(), before.at(lane).size());
        EXPECT_EQ(*used.rbegin(), used.size() - 1);
      }
    }
  }
  EXPECT_GT(changed, 0U);
}

}  // namespace
}  // namespace tutti::test
