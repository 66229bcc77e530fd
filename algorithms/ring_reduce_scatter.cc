// Ring reduce-scatter: the partial sum of block b starts at rank b + 1 and travels around the ring to rank b. Each rank
// adds its share. Cost: (n-1) alpha + (n-1)/n S beta, the minimum number of bytes.
// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
//
// Example with n = 4. "b2: 3+0" is the partial sum of block 2 over the inputs of ranks 3 and 0. Ranks send to rank + 1.
//                  rank 0        rank 1        rank 2        rank 3
//   round 0  send  b3: 0         b0: 1         b1: 2         b2: 3
//            keep  b2: 3+0       b3: 0+1       b0: 1+2       b1: 2+3
//   round 1  send  b2: 3+0       b3: 0+1       b0: 1+2       b1: 2+3
//            keep  b1: 2+3+0     b2: 3+0+1     b3: 0+1+2     b0: 1+2+3
//   round 2  send  b1: 2+3+0     b2: 3+0+1     b3: 0+1+2     b0: 1+2+3
//          output  b0: 1+2+3+0   b1: 2+3+0+1   b2: 3+0+1+2   b3: 0+1+2+3
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Ring : public Entry<Algorithm> {
 public:
  Ring() : Entry(Collective::reduce_scatter, "ring", "n-1 rounds in a ring, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return {.units = 1, .scratch = n, .rounds = n == 1 ? 1 : n - 1, .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_pipeline(problem, in_sequence(others, others), PipelineKind::ring);
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

    // Send first: a ring of receivers would deadlock.
    steps.send(round == 0 ? input(leaving) : scratch(leaving), next);
    if (arriving == self) {
      steps.reduce(previous, input(self), output(0), Fold::complete);
    } else {
      steps.reduce(previous, input(arriving), scratch(arriving));
    }
  }
};

}  // namespace

const Algorithm& ring_reduce_scatter() { return instance_of<Ring>(); }

}  // namespace tutti
