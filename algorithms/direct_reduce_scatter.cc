// Direct reduce-scatter: every rank sends each other rank its block, and reduces the received blocks in one step, in
// rank order. Cost: alpha + (n-1)/n S beta. For full crossbars, where a port handles n-1 concurrent messages.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Direct : public Entry<Algorithm> {
 public:
  Direct()
      : Entry(Collective::reduce_scatter, "direct",
              "each rank sends each block to its owner, one n-way reduction, (n-1)/n S") {}

  Shape shape(const Problem&) const override { return {.rounds = 2, .stages = {0, 1}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_all(problem, at_once(others));
    cost_law.folded = others;
    cost_law.longest = 1;
    cost_law.rounded = others / problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0) {
      // Starts with the next rank, so that no two ranks send to the same peer first.
      for (Rank i = 1; i < n; ++i) steps.send(input((self + i) % n), (self + i) % n);
      return;
    }
    std::vector<Operand> sources;
    for (Rank rank = 0; rank < n; ++rank) sources.push_back(rank == self ? input(self) : lane(rank, 1));
    const Operand target = output(0);
    steps.add(sources, {&target, 1}, Fold::complete);
  }
};

}  // namespace

const Algorithm& direct_reduce_scatter() { return instance_of<Direct>(); }

}  // namespace tutti
