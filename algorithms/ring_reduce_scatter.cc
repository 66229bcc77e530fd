// Ring reduce-scatter: the partial sum of block b starts at rank b + 1 and collects every rank's share on its way round
// to b. (n-1) a + (n-1)/n S b: fewest bytes, only neighbours speak.
// P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Ring : public Entry<Algorithm> {
 public:
  Ring() : Entry(Collective::reduce_scatter, "ring", "n-1 rounds between neighbours, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return {.units = 1, .scratch = n, .rounds = n == 1 ? 1 : n - 1, .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_pipeline(problem, in_turn(others, others), PipelineKind::ring);
    cost_law.folded = others;
    cost_law.longest = 1;
    cost_law.rounded = others / 2;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (n == 1) return steps.fold({input(0)}, {output(0)}, Fold::complete);
    const Rank next = (self + 1) % n;
    const Rank previous = (self + n - 1) % n;
    const Rank leaving = (self + n - 1 - round) % n;
    const Rank arriving = (leaving + n - 1) % n;

    steps.send(round == 0 ? input(leaving) : scratch(leaving), next);  // First: a ring of receivers would wait forever.
    if (arriving == self) {
      steps.reduce(previous, input(self), output(0), Fold::complete);
    } else {
      steps.reduce(previous, input(arriving), scratch(arriving));
    }
  }
};

}  // namespace

const Algorithm& ring_reduce_scatter() {
  static const Ring algorithm;
  return algorithm;
}

}  // namespace tutti
