// Ring all-gather: every block travels around the ring; each rank communicates with its two ring peers only. Cost:
// (n-1) alpha + (n-1)/n S beta, the minimum number of bytes.
// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Ring : public Entry<Algorithm> {
 public:
  Ring() : Entry(Collective::all_gather, "ring", "n-1 rounds in a ring, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = problem.ranks == 1 ? 1 : problem.ranks - 1, .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_pipeline(problem, in_sequence(others, others), PipelineKind::ring);
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0 && !problem.in_place) steps.copy(input(0), output(self));
    if (n == 1) return;
    const Rank next = (self + 1) % n;
    const Rank previous = (self + n - 1) % n;
    const Rank leaving = (self + n - round) % n;
    const Rank arriving = (leaving + n - 1) % n;

    steps.send(output(leaving), next);
    steps.recv(previous, output(arriving));
  }
};

}  // namespace

const Algorithm& ring_all_gather() { return instance_of<Ring>(); }

}  // namespace tutti
