// Direct gather: all ranks send their blocks to the root. Cost at the root: alpha + (n-1)/n S beta. Minimum number of
// bytes, but n-1 messages at one port.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Direct : public Entry<Algorithm> {
 public:
  Direct() : Entry(Collective::gather, "direct", "all ranks send to the root, 1 hop, S/n") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_root(problem, {.depth = 1, .chain = 1, .received = others, .messages = others});
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (self != problem.root) return steps.send(input(0), problem.root);
    if (!problem.in_place) steps.copy(input(0), output(self));
    for (Rank i = 1; i < n; ++i) steps.recv((self + i) % n, output((self + i) % n));
  }
};

}  // namespace

const Algorithm& direct_gather() { return instance_of<Direct>(); }

}  // namespace tutti
