// Direct all-to-all: every rank sends all its blocks, then receives all. Cost: alpha + (n-1)/n S beta. For full
// crossbars.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Direct : public Entry<Algorithm> {
 public:
  Direct() : Entry(Collective::all_to_all, "direct", "each rank sends each block to its receiver, (n-1)/n S") {}

  Shape shape(const Problem&) const override { return {.rounds = 2, .stages = {0, 1}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_all(problem, at_once(others));
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0 && !problem.in_place) steps.copy(input(self), output(self));
    for (Rank i = 1; i < n; ++i) {
      const Rank to = (self + i) % n, from = (self + n - i) % n;
      round == 0 ? steps.send(input(to), to) : steps.recv(from, output(from));
    }
  }
};

}  // namespace

const Algorithm& direct_all_to_all() { return instance_of<Direct>(); }

}  // namespace tutti
