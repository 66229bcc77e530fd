// Two-shot all-reduce in mapped memory: each rank reduces its unit from all ranks' inputs, in rank order, and stores it
// into all ranks' outputs. Cost: 2(n-1)/n S beta without a copy, and two flag rounds. The reader of a cache line is its
// next writer, which suits host caches. Works in place: between entry and exit, only rank r accesses unit r. Entry
// flags: all inputs are valid and all outputs may be written. Exit flags: all inputs are read and all outputs written.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class TwoShotMapped : public Entry<Algorithm> {
 public:
  TwoShotMapped()
      : Entry(Collective::all_reduce, "two_shot_mapped",
              "each rank reduces a share and stores it in the memory of all peers, 2(n-1)/n S") {}

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

const Algorithm& two_shot_mapped_all_reduce() { return instance_of<TwoShotMapped>(); }

}  // namespace tutti
