// Bruck's all-gather in reverse. In the round of distance d, a rank sends to the rank at distance d. The message has
// the partial sums of the blocks at distance d and more. Cost: ceil(log2 n) alpha + (n-1)/n S beta for any n. Far ranks
// first. Sources: the mirrored tree of J. Bruck et al., 1997. The same tree as in S. Jeaugey, "PAT: a new algorithm for
// all-gather and reduce-scatter operations at scale", 2025, without its limit on buffer size.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class Bruck : public Entry<Algorithm> {
 public:
  Bruck() : Entry(Collective::reduce_scatter, "bruck", "log2(n) rounds for any n, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return {.units = 1, .scratch = n, .rounds = std::max(1u, log2_rounded_up(n)), .stages = {0}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = with_distances(problem, rounds_by_distance(problem.ranks), Partners::modulo);
    cost_law.folded = problem.ranks - 1;
    cost_law.copied = std::bit_ceil(problem.ranks) - problem.ranks;
    cost_law.rounded = mean_hops(problem.ranks);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (n == 1) return steps.fold({input(0)}, {output(0)}, Fold::complete);
    const std::uint32_t rounds = log2_rounded_up(n);
    const Rank distance = Rank{1} << (rounds - 1 - round);
    const Rank count = std::min(distance, n - distance);
    const Wrapped leaving = wrapped(self + distance, count, n);
    const Wrapped arriving = wrapped(self, count, n);
    const Space own = round == 0 ? Space::input : Space::scratch;

    for (const auto& [first, blocks] : leaving.runs) {
      if (blocks > 0) steps.send(units(own, first, blocks), (self + distance) % n);
    }
    const bool whole = distance == 1;
    for (const auto& [first, blocks] : arriving.runs) {
      if (blocks == 0) continue;
      const Operand target = whole ? output(0) : scratch(first, blocks);
      steps.reduce((self + n - distance) % n, units(own, first, blocks), target,
                   whole ? Fold::complete : Fold::partial);
    }
    if (round == 0) keep_the_rest(self + count, distance - count, n, steps);
  }

 private:
  // Mean number of hops: a share for the rank at distance d takes one hop per set bit of d.
  static double mean_hops(Rank n) {
    double hops = 0;
    for (std::uint32_t bit = 0; n >> bit != 0; ++bit) {
      const Rank period = Rank{2} << bit, rest = n % period;
      hops += n / period * (period / 2) + (rest > period / 2 ? rest - period / 2 : 0);
    }
    return hops / n;
  }

  // If n is not a power of two, some blocks do not take part in the first round. Copies them to scratch.
  static void keep_the_rest(Rank first, Rank count, Rank n, Steps& steps) {
    for (const auto& [begin, blocks] : wrapped(first, count, n).runs) {
      if (blocks > 0) steps.copy(input(begin, blocks), scratch(begin, blocks));
    }
  }
};

}  // namespace

const Algorithm& bruck_reduce_scatter() { return instance_of<Bruck>(); }

}  // namespace tutti
