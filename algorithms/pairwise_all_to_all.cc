// Pairwise all-to-all: in round r, every rank sends to the rank r + 1 after it and receives from the rank r + 1 before
// it. Cost: (n-1) alpha + (n-1)/n S beta, in balanced rounds. Not in place for n > 2, since a block would be
// overwritten before it is sent.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Pairwise : public Entry<Algorithm> {
 public:
  Pairwise() : Entry(Collective::all_to_all, "pairwise", "n-1 balanced rounds, (n-1)/n S") {}

  bool supports(const Problem& problem) const override {
    return Entry::supports(problem) && (!problem.in_place || problem.ranks <= 2);
  }

  Shape shape(const Problem& problem) const override {
    return {.rounds = problem.ranks == 1 ? 1 : problem.ranks - 1, .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_all(problem, in_sequence(others, others));
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0 && !problem.in_place) steps.copy(input(self), output(self));
    if (n == 1) return;
    const Rank to = (self + round + 1) % n;
    const Rank from = (self + n - round - 1) % n;
    steps.send(input(to), to);
    steps.recv(from, output(from));
  }
};

}  // namespace

const Algorithm& pairwise_all_to_all() { return instance_of<Pairwise>(); }

}  // namespace tutti
