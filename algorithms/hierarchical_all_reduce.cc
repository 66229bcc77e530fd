// Hierarchical all-reduce: reduce-scatter inside each host, all-reduce of every shard across hosts, all-gather inside
// each host. If the problem has racks, the middle stage is hierarchical too. A host's link carries 2(k-1)/k S beta for
// k hosts of any size. Latency is the sum of the three stages:
//   hierarchical       direct inside; direct across few hosts, otherwise halving-doubling: (2 + 2 log2(k)) alpha
//   hierarchical_ring  rings inside and across: (2(g-1) + 2(k-1)) alpha for g ranks per host
// Shards of hosts of different sizes do not match, so the block is cut at the shard borders of all hosts. Each interval
// has one owner per host, and these owners run one all-reduce.
#include <algorithm>
#include <numeric>

#include "algorithms/catalogue.h"
#include "algorithms/entry.h"
#include "algorithms/memo.h"
#include "src/base/status.h"

namespace tutti {
namespace {

constexpr std::uint64_t kMaxUnits = 1 << 20;
constexpr std::uint64_t kMaxTags = 1 << 16;
constexpr std::uint32_t kInsideTags = 2;    // One of the reduce-scatters, one of the all-gathers.
constexpr std::uint32_t kTagsOfAcross = 2;  // Maximum of the algorithm across the last level's groups.
// Up to this number of hosts, the direct algorithm is used across. The direct algorithm sends and receives in separate
// stages, so that one chunk can be between hosts while the next ones are inside. From 6 hosts on, the number of
// messages costs as much as this gains (measured).
constexpr Rank kFewHosts = 4;

struct Names {
  const char* reduce_scatter;
  const char* all_gather;
  const char* across;      // An all-reduce that uses at most two tags.
  const char* across_few;  // The same for few hosts.
};

// Units such that every shard border of groups of these sizes is a unit border; 0 if there are too many.
std::uint64_t units_of_shards(const std::vector<Rank>& groups) {
  std::uint64_t units = 1;
  for (const Rank size : groups) {
    if (size == 0 || (units = std::lcm(units, std::uint64_t{size})) > kMaxUnits) return 0;
  }
  return units;
}

// Marks the shard borders of all hosts, in units of shards.
std::vector<bool> borders_of(const std::vector<Rank>& hosts, std::uint32_t shard_units) {
  std::vector<bool> borders(shard_units + 1, false);
  for (const Rank size : hosts) {
    for (Rank shard = 0; shard <= size; ++shard) borders[shard_units / size * shard] = true;
  }
  return borders;
}

class Hierarchical : public Entry<Sequence> {
 public:
  Hierarchical(const char* name, const char* summary, const Names& names)
      : Entry(Collective::all_reduce, name, summary), names_(names) {}

  bool supports(const Problem& problem) const override {
    if (!Entry::supports(problem) || problem.groups.empty() || problem.groups[0].size() < 2) return false;
    Rank members = problem.ranks;
    std::uint64_t units = 1;
    for (const std::vector<Rank>& level : problem.groups) {
      if (std::accumulate(level.begin(), level.end(), std::uint64_t{0}) != members) return false;
      units *= units_of_shards(level);
      if (units == 0 || units > kMaxUnits) return false;
      members = static_cast<Rank>(level.size());
    }
    return units * members <= kMaxUnits && tags_of(problem) <= kMaxTags;
  }

  std::shared_ptr<const Composition> compose(const Problem& problem) const override {
    return memo_.get(problem, [&] { return composed(problem); });
  }

  // The largest hosts have the most work inside; the smallest hosts have the largest shards per rank across.
  CostLaw cost_law(const Problem& problem) const override {
    const std::vector<Rank>& hosts = problem.groups[0];
    const auto [smallest, largest] = std::minmax_element(hosts.begin(), hosts.end());
    const auto inside = [&, size = *largest](Collective collective, const char* name) {
      return divided(find(collective, name)->cost_law({.collective = collective, .ranks = size, .groups = {}}), size);
    };
    const Across across = across_hosts(problem);
    CostLaw gather = inside(Collective::all_gather, names_.all_gather);
    gather.copied = 0;   // In place.
    gather.rounded = 0;  // The result from across is already rounded.
    CostLaw cost_law = then(inside(Collective::reduce_scatter, names_.reduce_scatter), gather);
    cost_law = then(cost_law, between_hosts(across.algorithm->cost_law(across.problem), problem, *smallest));
    cost_law.units = units_of_shards(hosts) * across.algorithm->cost_law(across.problem).units;
    return cost_law;
  }

 private:
  // Converts the cost of the algorithm across, where hosts are ranks, to one rank of a host.
  static CostLaw between_hosts(const CostLaw& hosts, const Problem& problem, Rank ranks) {
    CostLaw shared = divided(hosts, ranks);
    const std::uint64_t parts_of_a_rank = (parts_across(problem) + ranks - 1) / ranks;
    CostLaw raised = shared;
    raised.levels[0] = {};
    for (std::size_t i = CostLaw::kLevels - 1; i > 0; --i) {
      raised.levels[i] = shared.levels[i - 1];
      raised.levels[i].messages *= static_cast<double>(parts_of_a_rank);
      const Traffic& level = hosts.levels[i - 1];
      raised.levels[i].between = i == 1 ? std::max(level.sent, level.received) : level.between;
    }
    return raised;
  }

  Composition composed(const Problem& problem) const {
    const std::vector<Rank>& hosts = problem.groups[0];
    const Across across = across_hosts(problem);
    const Shape shape = across.algorithm->shape(across.problem);
    const auto shard_units = static_cast<std::uint32_t>(units_of_shards(hosts));
    const std::uint32_t units = shard_units * shape.units;

    std::vector<Part> scatters, gathers;
    std::uint32_t inside = 0;  // Units of scratch; hosts share them, since no rank is in two hosts.
    Rank first = 0;
    for (const Rank size : hosts) {
      scatters.push_back(inside_host(first, size, units));
      inside = std::max(inside, scatters.back().algorithm->shape(scatters.back().problem).scratch > 0 ? units : 0);
      gathers.push_back(scatters.back());
      gathers.back().algorithm = find(Collective::all_gather, names_.all_gather);
      gathers.back().problem.collective = Collective::all_gather;
      gathers.back().input = Space::output;
      gathers.back().tag = 1;
      first += size;
    }
    std::vector<Part> reductions = parts_across(hosts, shard_units, across, inside);
    const std::uint32_t outside = (shape.scratch + shape.units - 1) / shape.units * units;
    return {.units = units,
            .scratch = inside + outside,
            .stages = {std::move(scatters), std::move(reductions), std::move(gathers)}};
  }

  struct Across {
    const Algorithm* algorithm;
    Problem problem;
  };

  Across across_hosts(const Problem& problem) const {
    Across across{.algorithm = this, .problem = problem};
    across.problem.ranks = static_cast<Rank>(problem.groups[0].size());
    across.problem.in_place = true;
    across.problem.groups.erase(across.problem.groups.begin());
    const char* flat = across.problem.ranks <= kFewHosts ? names_.across_few : names_.across;
    if (!supports(across.problem)) across.algorithm = find(Collective::all_reduce, flat);
    return across;
  }

  Part inside_host(Rank first, Rank size, std::uint32_t units) const {
    Part part;
    part.algorithm = find(Collective::reduce_scatter, names_.reduce_scatter);
    part.problem = {.collective = Collective::reduce_scatter, .ranks = size, .groups = {}};
    for (Rank i = 0; i < size; ++i) part.members.push_back(first + i);
    for (Rank i = 0; i <= size; ++i) part.cuts.push_back(units / size * i);
    return part;
  }

  std::vector<Part> parts_across(const std::vector<Rank>& hosts, std::uint32_t shard_units, const Across& across,
                                 std::uint32_t scratch) const {
    const std::vector<bool> borders = borders_of(hosts, shard_units);
    const std::uint32_t units = across.algorithm->shape(across.problem).units;
    const std::uint64_t tags = tags_across(across.problem);
    std::vector<Part> parts;
    for (std::uint32_t begin = 0, end = 1; end <= shard_units; ++end) {
      if (!borders[end]) continue;
      Part part;
      part.algorithm = across.algorithm;
      part.problem = across.problem;
      for (Rank host = 0, first = 0; host < hosts.size(); first += hosts[host++]) {
        part.members.push_back(first + begin / (shard_units / hosts[host]));
      }
      for (std::uint32_t i = 0; i <= units; ++i) part.cuts.push_back(begin * units + i * (end - begin));
      part.input = part.output = Space::output;
      part.scratch = scratch;
      const std::uint64_t tag = kInsideTags + tags * parts.size();
      TUTTI_ASSERT(tag < kMaxTags);  // Checked by supports().
      part.tag = static_cast<std::uint16_t>(tag);
      part.fold = Fold::complete;
      parts.push_back(std::move(part));
      begin = end;
    }
    return parts;
  }

  // Tags used from this level on. The parts across are this far apart.
  static std::uint64_t tags_of(const Problem& problem) {
    Problem across = problem;
    across.groups.erase(across.groups.begin());
    return kInsideTags + parts_across(problem) * tags_across(across);
  }
  static std::uint64_t parts_across(const Problem& problem) {
    const std::vector<Rank>& hosts = problem.groups[0];
    const std::vector<bool> borders = borders_of(hosts, static_cast<std::uint32_t>(units_of_shards(hosts)));
    return static_cast<std::uint64_t>(std::count(borders.begin(), borders.end(), true)) - 1;
  }
  static std::uint64_t tags_across(const Problem& across) {
    const bool levels = !across.groups.empty() && across.groups[0].size() > 1;
    return levels ? tags_of(across) : kTagsOfAcross;
  }

  Names names_;
  mutable Memo memo_;
};

}  // namespace

const Algorithm& hierarchical_all_reduce() {
  static const Hierarchical algorithm("hierarchical", "direct inside hosts and between few hosts, 2(k-1)/k S per host",
                                      {"direct", "direct", "halving_doubling", "two_shot"});
  return algorithm;
}

const Algorithm& hierarchical_ring_all_reduce() {
  static const Hierarchical algorithm("hierarchical_ring", "rings inside hosts and between hosts, 2(k-1)/k S per host",
                                      {"ring", "ring", "ring", "ring"});
  return algorithm;
}

}  // namespace tutti
