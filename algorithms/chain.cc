// Chains of ranks, in rank order: a broadcast passes the root's block from rank to rank, beginning at the root, and a
// reduction the partial sum, ending at the root. Cost: (n-1) alpha + S beta when chunks are pipelined: full bandwidth,
// maximum latency. A single round, so that both slices and chunks are pipelined.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Chain : public Entry<Algorithm> {
 public:
  using Entry::Entry;

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double hops = problem.ranks - 1, inner = problem.ranks > 2 ? 1 : 0;
    const bool adds = reduces(problem.collective);
    const Traffic own = {
        .depth = hops, .chain = hops, .sent = adds ? inner : 1, .received = adds ? 1 : inner, .messages = 1 + inner};
    CostLaw cost_law = with_pipeline(problem, own, PipelineKind::chain);
    cost_law.longest = 1;
    if (adds) {
      cost_law.folded = 1;
      cost_law.rounded = hops / 2;
    } else {
      cost_law.copied = 1 - inner;
    }
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank n = problem.ranks, next = (self + 1) % n, previous = (self + n - 1) % n;
    const bool is_root = self == problem.root;
    std::vector<Operand> sources, targets;
    if (reduces(problem.collective)) {  // The chain begins with the root's successor.
      if (previous != problem.root) sources.push_back(lane(previous, 1));
      sources.push_back(input(0));
      targets.push_back(is_root ? output(0) : lane(next, 1));
    } else {
      sources.push_back(is_root ? input(0) : lane(previous, 1));
      if (!is_root || !problem.in_place) targets.push_back(output(0));
      if (next != problem.root) targets.push_back(lane(next, 1));
    }
    const bool complete = reduces(problem.collective) && is_root;
    if (!targets.empty()) steps.add(sources, targets, complete ? Fold::complete : Fold::partial);
  }
};

}  // namespace

const Algorithm& chain_broadcast() {
  static const Chain algorithm(Collective::broadcast, "chain", "along a chain of ranks, n-1 hops, S");
  return algorithm;
}

const Algorithm& chain_reduce() {
  static const Chain algorithm(Collective::reduce, "chain", "along a chain of ranks, n-1 hops, S");
  return algorithm;
}

}  // namespace tutti
