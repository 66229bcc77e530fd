// Two-shot all-reduce in peers' memory: each rank folds its unit of every rank's input, in rank order, and stores it
// into every rank's output. 2(n-1)/n S b without a copy, and two flag rounds. A line that was read is next written by
// its reader, which host memory rewards. In place too: unit r is touched by rank r alone between entry and exit.
// Entry: all inputs are there, and all outputs may be written. Exit: all is read and written.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class TwoShotMapped : public Entry<Algorithm> {
 public:
  TwoShotMapped()
      : Entry(Collective::all_reduce, "two_shot_mapped", "each rank folds and stores its unit in peers' memory") {}

  Shape shape(const Problem& problem) const override { return {.units = problem.ranks, .rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double share = 1.0 / problem.ranks, others = 1 - share;
    CostLaw cost_law = in_peers_memory(problem, others, others);
    cost_law.folded = others;
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets;
      for (Rank rank = 0; rank < n; ++rank) sources.push_back(at(rank, input(self)));
      for (Rank i = 0; i < n; ++i) targets.push_back(at((self + i) % n, output(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets, Fold::complete);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& two_shot_mapped_all_reduce() {
  static const TwoShotMapped algorithm;
  return algorithm;
}

}  // namespace tutti
