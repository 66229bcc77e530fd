#include "src/plan/problem.h"

#include <algorithm>

#include "src/base/named.h"

namespace tutti {
namespace {

constexpr Named<Collective, kCollectives> kNamed = {
    "collective",
    {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", "gather", "scatter"}};

}  // namespace

const char* name(Collective collective) { return kNamed.name(collective); }
Result<Collective> parse_collective(std::string_view text) { return kNamed.parse(text); }

Rank input_blocks(const Problem& problem, Rank rank) {
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce:
    case Collective::gather: return 1;
    case Collective::reduce_scatter:
    case Collective::all_to_all: return problem.ranks;
    case Collective::broadcast: return rank == problem.root ? 1 : 0;
    case Collective::scatter: return rank == problem.root ? problem.ranks : 0;
  }
  return 0;
}

Rank output_blocks(const Problem& problem, Rank rank) {
  switch (problem.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::broadcast:
    case Collective::scatter: return 1;
    case Collective::all_gather:
    case Collective::all_to_all: return problem.ranks;
    case Collective::reduce: return rank == problem.root ? 1 : 0;
    case Collective::gather: return rank == problem.root ? problem.ranks : 0;
  }
  return 0;
}

std::int64_t in_place_shift(const Problem& problem, Rank rank) {
  const auto shift = static_cast<std::int64_t>(rank);
  if (problem.collective == Collective::all_gather || problem.collective == Collective::gather) return shift;
  if (problem.collective == Collective::reduce_scatter || problem.collective == Collective::scatter) return -shift;
  return 0;
}

std::string describe(const Problem& problem) {
  constexpr std::size_t kMaxListed = 16;  // Maximum groups listed one by one; more groups of equal size are counted.
  std::string text = name(problem.collective);
  text += " of " + std::to_string(problem.ranks) + (problem.ranks == 1 ? " rank" : " ranks");
  if (has_root(problem.collective)) text += " root " + std::to_string(problem.root);
  if (problem.in_place) text += " in place";
  for (std::size_t level = 0; level < problem.groups.size(); ++level) {
    text += level == 0 ? ", groups " : " | ";
    const std::vector<Rank>& sizes = problem.groups[level];
    if (sizes.size() > kMaxListed && std::equal(sizes.begin() + 1, sizes.end(), sizes.begin())) {
      text += std::to_string(sizes.size()) + "x" + std::to_string(sizes[0]);
      continue;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : "+") + std::to_string(sizes[i]);
  }
  return text;
}

}  // namespace tutti
