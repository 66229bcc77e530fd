#include "algorithms/catalogue.h"

#include <algorithm>
#include <vector>

// One line per algorithm: collective and name. The function <name>_<collective>() returns the algorithm.
// clang-format off
#define TUTTI_CATALOGUE(entry)              \
  entry(all_reduce, ring)                   \
  entry(all_reduce, halving_doubling)       \
  entry(all_reduce, two_shot)               \
  entry(all_reduce, one_shot)               \
  entry(all_reduce, recursive_doubling)     \
  entry(all_reduce, double_binary_tree)     \
  entry(all_reduce, hierarchical)           \
  entry(all_reduce, hierarchical_ring)      \
  entry(all_reduce, hierarchical_tree)      \
  entry(all_reduce, host_one_shot)          \
  entry(all_reduce, host_doubling)          \
  entry(all_reduce, host_tree)              \
  entry(all_reduce, host_staged)            \
  entry(all_reduce, tree_staged)            \
  entry(all_reduce, two_shot_mapped)        \
  entry(all_reduce, two_shot_staged)        \
  entry(all_reduce, switch_staged)          \
  entry(all_reduce, switch_mapped)          \
  entry(all_gather, ring)                   \
  entry(all_gather, doubling)               \
  entry(all_gather, bruck)                  \
  entry(all_gather, direct)                 \
  entry(all_gather, hierarchical)           \
  entry(all_gather, host_ring)              \
  entry(all_gather, host_staged)            \
  entry(all_gather, direct_mapped)          \
  entry(all_gather, direct_staged)          \
  entry(all_gather, switch_staged)          \
  entry(all_gather, switch_mapped)          \
  entry(reduce_scatter, ring)               \
  entry(reduce_scatter, halving)            \
  entry(reduce_scatter, bruck)              \
  entry(reduce_scatter, direct)             \
  entry(reduce_scatter, hierarchical)       \
  entry(reduce_scatter, host_ring)          \
  entry(reduce_scatter, host_staged)        \
  entry(reduce_scatter, direct_mapped)      \
  entry(reduce_scatter, direct_staged)      \
  entry(reduce_scatter, switch_staged)      \
  entry(reduce_scatter, switch_mapped)      \
  entry(broadcast, chain)                   \
  entry(broadcast, binary_tree)             \
  entry(broadcast, direct)                  \
  entry(broadcast, hierarchical)            \
  entry(broadcast, direct_mapped)           \
  entry(broadcast, split_mapped)            \
  entry(broadcast, split_staged)            \
  entry(broadcast, switch_staged)           \
  entry(reduce, chain)                      \
  entry(reduce, binary_tree)                \
  entry(reduce, direct)                     \
  entry(reduce, hierarchical)               \
  entry(reduce, hierarchical_tree)          \
  entry(all_to_all, pairwise)               \
  entry(all_to_all, exchange)               \
  entry(all_to_all, bruck)                  \
  entry(all_to_all, direct)                 \
  entry(all_to_all, hierarchical)           \
  entry(all_to_all, direct_mapped)          \
  entry(all_to_all, direct_staged)          \
  entry(all_to_all, host_staged)            \
  entry(gather, direct)                     \
  entry(gather, binomial_tree)              \
  entry(scatter, direct)                    \
  entry(scatter, binomial_tree)
// clang-format on

namespace tutti {

#define TUTTI_DECLARE(collective, name) const Algorithm& name##_##collective();
TUTTI_CATALOGUE(TUTTI_DECLARE)
#undef TUTTI_DECLARE

namespace {

std::vector<const Algorithm*> entries_of(Collective wanted) {
  std::vector<const Algorithm*> entries;
#define TUTTI_ADD(collective, name) \
  if (wanted == Collective::collective) entries.push_back(&name##_##collective());
  TUTTI_CATALOGUE(TUTTI_ADD)
#undef TUTTI_ADD
  return entries;
}

}  // namespace

std::span<const Algorithm* const> catalogue(Collective collective) {
  static const std::vector<const Algorithm*> entries[kCollectives] = {
      entries_of(Collective::all_reduce), entries_of(Collective::all_gather), entries_of(Collective::reduce_scatter),
      entries_of(Collective::broadcast),  entries_of(Collective::reduce),     entries_of(Collective::all_to_all),
      entries_of(Collective::gather),     entries_of(Collective::scatter),
  };
  return entries[static_cast<std::size_t>(collective)];
}

const Algorithm* find(Collective collective, std::string_view name) {
  for (const Algorithm* algorithm : catalogue(collective)) {
    if (algorithm->name() == name) return algorithm;
  }
  return nullptr;
}

std::string names_of(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm* algorithm : catalogue(collective)) names.emplace_back(algorithm->name());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

bool requires_hosts(const Algorithm& algorithm, Collective collective) {
  const Problem flat = {.collective = collective, .ranks = 4, .groups = {}};
  Problem grouped = flat;
  grouped.groups = {{2, 2}};
  return !algorithm.supports(flat) && algorithm.supports(grouped);
}

}  // namespace tutti
