// Two-shot all-reduce in peers' scratch, for buffers that peers cannot access. Each rank copies its input into its
// scratch, reduces its unit from all ranks' scratch, in rank order, and stores it into all peers' scratch, from which
// they copy it to their outputs. Cost: 2(n-1)/n S beta, two flag rounds and two copies of (n-1)/n S. The three stages
// overlap across chunks. A rank signals after each of the first two stages, and begins the next one after the signals
// of all peers. Units [0, n) of scratch are contributions, units [n, 2n) are results.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class TwoShotStaged : public Entry<Algorithm> {
 public:
  TwoShotStaged()
      : Entry(Collective::all_reduce, "two_shot_staged",
              "each rank reduces a share in the scratch of all peers and stores it there, 2(n-1)/n S and two copies") {}

  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = 2 * problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double share = 1.0 / problem.ranks, others = 1 - share;
    CostLaw cost_law = in_peers_memory(problem, others, others);
    cost_law.folded = others;
    cost_law.copied = 2 * others;
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {output(self)};
      for (Rank rank = 0; rank < n; ++rank) sources.push_back(rank == self ? input(self) : at(rank, scratch(self)));
      for (Rank i = 1; i < n; ++i) targets.push_back(at((self + i) % n, scratch(n + self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      return steps.add(sources, targets, Fold::complete);
    }
    for (Rank i = 1; i < n; ++i) {
      const Rank unit = (self + i) % n;
      std::vector<Operand> sources, targets;
      if (round == 2 && i == 1) sources = flags;
      sources.push_back(round == 0 ? input(unit) : scratch(n + unit));
      targets.push_back(round == 0 ? scratch(unit) : output(unit));
      if (round == 0 && i == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    }
  }
};

}  // namespace

const Algorithm& two_shot_staged_all_reduce() { return instance_of<TwoShotStaged>(); }

}  // namespace tutti
