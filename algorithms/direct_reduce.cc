// Direct reduction: all ranks send to the root, which reduces all inputs in one step, in rank order. Cost at the root:
// alpha + (n-1) S beta.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Direct : public Entry<Algorithm> {
 public:
  Direct() : Entry(Collective::reduce, "direct", "all ranks send to the root, one n-way reduction, S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_root(problem, {.depth = 1, .chain = 1, .received = others, .messages = others});
    cost_law.folded = others;
    cost_law.longest = 1;
    cost_law.rounded = others / problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    if (self != problem.root) return steps.send(input(0), problem.root);
    std::vector<Operand> sources;
    for (Rank rank = 0; rank < problem.ranks; ++rank) sources.push_back(rank == self ? input(0) : lane(rank, 1));
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }
};

}  // namespace

const Algorithm& direct_reduce() { return instance_of<Direct>(); }

}  // namespace tutti
