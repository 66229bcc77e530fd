// Bruck's all-gather. After round i a rank holds the blocks of 2^(i+1) consecutive ranks, beginning with its own. In
// each round it sends all blocks it holds to the rank 2^i before it. Cost: ceil(log2 n) alpha + (n-1)/n S beta for any
// n. Small messages go to near ranks, large ones to far ranks. Blocks are stored at their final position; a range that
// wraps around takes two messages instead of a final rotation.
// Source: J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems",
// 1997.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class Bruck : public Entry<Algorithm> {
 public:
  Bruck() : Entry(Collective::all_gather, "bruck", "log2(n) rounds for any n, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    return {.rounds = std::max(1u, log2_rounded_up(problem.ranks)), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = with_distances(problem, rounds_by_distance(problem.ranks), Partners::modulo);
    cost_law.copied = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (round == 0 && !problem.in_place) steps.copy(input(0), output(self));
    if (n == 1) return;
    const Rank distance = Rank{1} << round;
    const Rank count = std::min(distance, n - distance);
    const Wrapped leaving = wrapped(self, count, n);
    const Wrapped arriving = wrapped(self + distance, count, n);

    for (const auto& [first, blocks] : leaving.runs) {
      if (blocks > 0) steps.send(output(first, blocks), (self + n - distance) % n);
    }
    for (const auto& [first, blocks] : arriving.runs) {
      if (blocks > 0) steps.recv((self + distance) % n, output(first, blocks));
    }
  }
};

}  // namespace

const Algorithm& bruck_all_gather() { return instance_of<Bruck>(); }

}  // namespace tutti
