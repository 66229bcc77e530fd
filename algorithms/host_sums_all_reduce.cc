// All-reduce of small messages between hosts of equal sizes: each rank sends its whole input to all ranks of its host
// and sums theirs. Then the ranks at one position of the hosts reduce these sums. All ranks get identical bits, since
// they add in the same order. For k hosts of g ranks:
//   host_one_shot  each sum to all hosts: 2 alpha + (g-1 + k-1) S beta. A host's link carries g (k-1) S.
//   host_doubling  exchanges between hosts: (1 + log2(k)) alpha + (g-1 + log2(k)) S beta. The link carries g log2(k) S.
#include <numeric>

#include "algorithms/catalogue.h"
#include "algorithms/cost_law.h"
#include "algorithms/memo.h"

namespace tutti {
namespace {

class HostSums : public Entry<Sequence> {
 public:
  HostSums(const char* name, const char* summary, const char* across)
      : Entry(Collective::all_reduce, name, summary), across_(across) {}

  bool supports(const Problem& problem) const override {
    return Entry::supports(problem) && has_hosts(problem) && HostMap(problem).even();
  }

  // Each rank computes its own sum, from its exact input and the compressed inputs of others.
  bool supports_compression(const Problem&) const override { return false; }

  std::shared_ptr<const Composition> compose(const Problem& problem) const override {
    return memo_.get(problem, [&] { return composed(problem); });
  }

  CostLaw cost_law(const Problem& problem) const override {
    const HostMap map(problem);
    const Part inside = part_of("one_shot", map.smallest()), across = part_of(across_, map.hosts());
    CostLaw between = across.algorithm->cost_law(across.problem);
    std::swap(between.levels[0], between.levels[1]);
    between.levels[1].between = std::max(between.levels[1].sent, between.levels[1].received) * map.smallest();
    return then(inside.algorithm->cost_law(inside.problem), between);
  }

 private:
  // An all-reduce of all data between so many ranks.
  static Part part_of(const char* algorithm, Rank ranks) {
    Part part;
    part.algorithm = find(Collective::all_reduce, algorithm);
    part.problem = {.collective = Collective::all_reduce, .ranks = ranks, .groups = {}};
    part.members.resize(ranks);
    part.cuts = {0, 1};
    return part;
  }

  Composition composed(const Problem& problem) const {
    const HostMap map(problem);
    std::vector<Part> inside, across;
    for (Rank host = 0; host < map.hosts(); ++host) {
      inside.push_back(part_of("one_shot", map.size(host)));
      std::iota(inside.back().members.begin(), inside.back().members.end(), map.first(host));
    }
    for (Rank position = 0; position < map.smallest(); ++position) {
      Part part = part_of(across_, map.hosts());
      for (Rank host = 0; host < map.hosts(); ++host) part.members[host] = map.first(host) + position;
      part.input = Space::output;
      part.fold = Fold::complete;
      across.push_back(std::move(part));
    }
    return {.stages = {std::move(inside), std::move(across)}};
  }

  const char* across_;
  mutable Memo memo_;
};

}  // namespace

const Algorithm& host_one_shot_all_reduce() {
  static const HostSums algorithm("host_one_shot", "whole inputs inside hosts, each host's sum to all hosts",
                                  "one_shot");
  return algorithm;
}

const Algorithm& host_doubling_all_reduce() {
  static const HostSums algorithm("host_doubling", "whole inputs inside hosts, log2(k) exchanges of sums between hosts",
                                  "recursive_doubling");
  return algorithm;
}

}  // namespace tutti
