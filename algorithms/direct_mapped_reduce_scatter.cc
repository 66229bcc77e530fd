// Reduce-scatter in mapped memory: each rank reduces its block from all ranks' inputs, in rank order. Cost: (n-1)/n S
// beta read, and two flag rounds. Entry flags: all inputs are valid. Exit flags: all inputs have been read.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class DirectMapped : public Entry<Algorithm> {
 public:
  DirectMapped()
      : Entry(Collective::reduce_scatter, "direct_mapped",
              "each rank reduces its block from the memory of all peers, (n-1)/n S") {}

  Shape shape(const Problem&) const override { return {.rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, 0, problem.ranks - 1);
    cost_law.folded = problem.ranks - 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {output(0)};
      for (Rank rank = 0; rank < n; ++rank) sources.push_back(at(rank, input(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets, Fold::complete);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& direct_mapped_reduce_scatter() { return instance_of<DirectMapped>(); }

}  // namespace tutti
