// Direct all-gather: every rank sends its block to all others in one step, which also writes its own output. Cost:
// alpha + (n-1)/n S beta. For full crossbars, where a port handles n-1 concurrent messages.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Direct : public Entry<Algorithm> {
 public:
  Direct() : Entry(Collective::all_gather, "direct", "each rank sends its block to all ranks, (n-1)/n S") {}

  Shape shape(const Problem&) const override { return {.rounds = 2, .stages = {0, 1}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_all(problem, at_once(others));
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 1) {
      // In the order of sending.
      for (Rank i = 1; i < n; ++i) steps.recv((self + n - i) % n, output((self + n - i) % n));
      return;
    }
    std::vector<Operand> targets;
    if (!problem.in_place) targets.push_back(output(self));
    for (Rank i = 1; i < n; ++i) targets.push_back(lane((self + i) % n, 1));
    const Operand own = input(0);
    if (!targets.empty()) steps.add({&own, 1}, targets);
  }
};

}  // namespace

const Algorithm& direct_all_gather() { return instance_of<Direct>(); }

}  // namespace tutti
