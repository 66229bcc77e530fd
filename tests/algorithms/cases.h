// Problems on which tests run every algorithm of the catalogue.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/plan/fuse.h"
#include "src/plan/plan.h"

namespace tutti::cases {

struct Entry {
  Collective collective;
  const Algorithm* algorithm;
};

inline std::vector<Entry> all_entries() {
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Algorithm* algorithm : catalogue(collective)) entries.push_back({collective, algorithm});
  }
  return entries;
}

// Returns the entries of algorithms that need hosts of several ranks.
inline std::vector<Entry> entries_over_hosts() {
  std::vector<Entry> entries = all_entries();
  std::erase_if(entries, [](const Entry& entry) {
    const Collective collective = entry.collective;
    return entry.algorithm->supports({.collective = collective, .ranks = 6, .groups = {}}) ||
           !entry.algorithm->supports({.collective = collective, .ranks = 6, .groups = {{3, 3}}});
  });
  return entries;
}

// Returns the entries of algorithms that need no groups.
inline std::vector<Entry> flat_entries() {
  std::vector<Entry> entries;
  for (const Entry& entry : all_entries()) {
    if (entry.algorithm->supports({.collective = entry.collective, .ranks = 4, .groups = {}})) entries.push_back(entry);
  }
  return entries;
}

inline std::string title(const Entry& entry) {
  std::string text = name(entry.collective);
  text.append("_").append(entry.algorithm->name());
  return text;
}
inline std::string title_of(const testing::TestParamInfo<Entry>& parameter) { return title(parameter.param); }

// Returns the problems with n ranks that the algorithm supports: in place and out of place, with root 0, n / 2 and n -
// 1.
inline std::vector<Problem> problems(const Entry& entry, Rank n) {
  std::set<Rank> roots{0};
  if (has_root(entry.collective)) roots.insert({n / 2, n - 1});
  std::vector<Problem> result;
  for (const bool in_place : {false, true}) {
    for (const Rank root : roots) {
      const Problem problem{
          .collective = entry.collective, .ranks = n, .root = root, .in_place = in_place, .groups = {}};
      if (entry.algorithm->supports(problem)) result.push_back(problem);
    }
  }
  return result;
}

enum class Fusion { none, rounds, whole_stages, stages };
inline constexpr Fusion kFusions[] = {Fusion::none, Fusion::rounds, Fusion::whole_stages, Fusion::stages};

inline std::vector<Plan> fused(std::vector<Plan> plans, Fusion fusion) {
  if (fusion == Fusion::none) return plans;
  for (Plan& plan : plans) fuse(plan, fusion == Fusion::stages ? Across::stages : Across::rounds);
  if (fusion == Fusion::whole_stages) fuse_stages(plans);
  return plans;
}

inline std::string name(Fusion fusion) {
  constexpr const char* names[] = {"as emitted", "fused across rounds", "fused with whole stages",
                                   "fused across stages"};
  return names[static_cast<int>(fusion)];
}

}  // namespace tutti::cases
