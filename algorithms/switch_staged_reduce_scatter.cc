// Reduce-scatter in the scratch of all ranks, in which switches add (NCCL: NVLS). Each rank copies all blocks into its
// scratch, and reads the sum of its block over all ranks. Cost: with switches, S beta sent, since they read a rank's
// own part through its port, too, and S/n beta received; otherwise (n-1)/n S beta received, which the cost law states.
// Two flag rounds and a copy of S. The stages overlap across chunks. Flags after the first stage: all blocks are
// copied. Flags after the second stage: all are read.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchStaged : public Entry<Algorithm> {
 public:
  SwitchStaged()
      : Entry(Collective::reduce_scatter, "switch_staged",
              "switches add the scratch of all ranks, S out of each rank and a copy of S") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, 0, problem.ranks - 1);
    cost_law.folded = problem.ranks - 1;
    cost_law.copied = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    for (Rank block = 0; round == 0 && block < n; ++block) {
      const Operand source = input(block);
      std::vector<Operand> targets = {scratch(block)};
      if (block == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add({&source, 1}, targets);
    }
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {output(0)};
      sources.push_back(all(scratch(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets, Fold::complete);
    }
    if (round == 2 && n > 1) steps.add(flags, {});
  }
};

}  // namespace

const Algorithm& switch_staged_reduce_scatter() { return instance_of<SwitchStaged>(); }

}  // namespace tutti
