// Recursive halving reduce-scatter: in each round a rank sends the blocks of the other half of its group to its
// counterpart there. Cost: ceil(log2 n) alpha + (n-1)/n S beta if n is a power of two; otherwise unpaired ranks add at
// most one message per round. Long distances come first, so the largest messages cross the whole machine.
// Source: R. Rabenseifner, "Optimization of collective reduction operations", 2004.
#include <cmath>

#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/halving.h"

namespace tutti {
namespace {

class RecursiveHalving : public Entry<Algorithm> {
 public:
  RecursiveHalving()
      : Entry(Collective::reduce_scatter, "halving", "log2(n) rounds, message size halves each round, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    const Rank n = problem.ranks;
    return exchange_shape({.units = 1, .scratch = n, .rounds = 0, .stages = {}}, n);
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = with_distances(problem, rounds_by_halves(problem.ranks), Partners::by_bits);
    cost_law.folded = cost_law.levels[0].received + cost_law.levels[1].received;
    cost_law.longest = (problem.ranks + 1) / 2;
    cost_law.rounded = std::log2(problem.ranks) / 2;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (n == 1) return steps.fold({input(0)}, {output(0)}, Fold::complete);
    if (round > 0 && pipelines_exchanges(n)) receive(n, self, round - 1, steps);
    if (round == log2_rounded_up(n)) return;
    const Halving half = halving(n, self, round);
    if (half.given.count > 0) steps.send(units(own_space(n, self, round), half.given.first, half.given.count), half.to);
    if (!pipelines_exchanges(n)) receive(n, self, round, steps);
  }

 private:
  // Only a rank that was unpaired in the first exchange enters the second one without a partial sum.
  static Space own_space(Rank n, Rank self, std::uint32_t exchange) {
    const bool raw = exchange == 0 || (exchange == 1 && halving(n, self, 0).from.empty());
    return raw ? Space::input : Space::scratch;
  }

  static void receive(Rank n, Rank self, std::uint32_t exchange, Steps& steps) {
    const Halving half = halving(n, self, exchange);
    if (half.from.empty()) return;
    const Space own = own_space(n, self, exchange);
    std::vector<Operand> sources;
    for (const Rank peer : half.from) sources.push_back(lane(peer, half.kept.count));
    sources.push_back(units(own, half.kept.first, half.kept.count));
    const bool whole = half.kept.count == 1;
    const Operand target = whole ? output(0) : scratch(half.kept.first, half.kept.count);
    steps.add(sources, {&target, 1}, whole ? Fold::complete : Fold::partial);
  }
};

}  // namespace

const Algorithm& halving_reduce_scatter() { return instance_of<RecursiveHalving>(); }

}  // namespace tutti
