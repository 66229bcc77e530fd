// All-gather in the scratch of all ranks, to which switches multicast (NCCL: NVLS). Each rank stores its block into the
// scratch of all, from which they copy the blocks to their outputs. Cost: with switches, S/n beta sent, and S beta
// received, since a rank's own block comes back to it; otherwise (n-1)/n S beta sent, which the cost law states. Two
// flag rounds and a copy of S. The stages overlap across chunks. Flags of the first stage: scratch may be written.
// Flags after the second stage: all blocks are stored.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchStaged : public Entry<Algorithm> {
 public:
  SwitchStaged()
      : Entry(Collective::all_gather, "switch_staged",
              "switches store the block of each rank in the scratch of all, S into each rank and a copy of S") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, problem.ranks - 1, 0);
    cost_law.copied = problem.ranks + 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 0 && n > 1) steps.add({}, flags);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {all(scratch(self))};
      sources.push_back(input(0));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    }
    for (Rank rank = 0; round == 2 && rank < n; ++rank) {
      std::vector<Operand> sources;
      if (rank == 0) sources = flags;
      sources.push_back(scratch(rank));
      const Operand target = output(rank);
      steps.add(sources, {&target, 1});
    }
  }
};

}  // namespace

const Algorithm& switch_staged_all_gather() { return instance_of<SwitchStaged>(); }

}  // namespace tutti
