#include "algorithms/catalogue.h"

#include "tests/algorithms/cases.h"

namespace tutti::test {
namespace {

TEST(Catalogue, FindsEveryAlgorithm_ByName) {
  for (const cases::Entry& entry : cases::all_entries()) {
    EXPECT_EQ(find(entry.collective, entry.algorithm->name()), entry.algorithm) << cases::title(entry);
  }
  EXPECT_EQ(find(Collective::broadcast, "ring"), nullptr);
}

TEST(Catalogue, HasUniversalAlgorithm_ForEachCollective) {
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const auto supports_all = [&](const Algorithm* algorithm) {
      for (const Rank n : {1, 2, 3, 257}) {
        const std::size_t expected = has_root(collective) ? std::set<Rank>{0, n / 2, n - 1}.size() : 1;
        if (cases::problems({collective, algorithm}, n).size() != 2 * expected) return false;
      }
      return true;
    };
    const auto algorithms = catalogue(collective);
    EXPECT_TRUE(std::any_of(algorithms.begin(), algorithms.end(), supports_all)) << name(collective);
  }
}

TEST(Catalogue, SupportsOnlyOwnCollective) {
  for (const cases::Entry& entry : cases::all_entries()) {
    for (std::uint32_t i = 0; i < kCollectives; ++i) {
      const Problem problem{.collective = static_cast<Collective>(i), .ranks = 4, .groups = {{2, 2}}};
      EXPECT_EQ(entry.algorithm->supports(problem), problem.collective == entry.collective) << cases::title(entry);
    }
  }
}

TEST(Catalogue, RejectsRootOutOfRange) {
  for (const cases::Entry& entry : cases::all_entries()) {
    EXPECT_FALSE(
        entry.algorithm->supports({.collective = entry.collective, .ranks = 4, .root = 4, .groups = {{2, 2}}}));
  }
}

}  // namespace
}  // namespace tutti::test
