// All-to-all by pairwise exchange, a round-robin tournament: in round r, ranks with sum r modulo n exchange blocks.
// Cost: n alpha + (n-1)/n S beta. Works in place, because each block is overwritten by the one received in exchange.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Exchange : public Entry<Algorithm> {
 public:
  Exchange() : Entry(Collective::all_to_all, "exchange", "n rounds, pairs of ranks exchange blocks, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override { return {.rounds = problem.ranks, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1, rounds = problem.ranks > 2 ? problem.ranks : 1;
    CostLaw cost_law = with_all(problem, in_sequence(rounds, others));
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank partner = (round + problem.ranks - self) % problem.ranks;
    if (partner != self) {
      steps.send(input(partner), partner);
      steps.recv(partner, output(partner));
    } else if (!problem.in_place) {
      steps.copy(input(self), output(self));
    }
  }
};

}  // namespace

const Algorithm& exchange_all_to_all() { return instance_of<Exchange>(); }

}  // namespace tutti
