// Reduce-scatter in mapped memory, in which switches add (NCCL: NVLS with registered buffers). Each rank reads the sum
// of its block over the inputs of all ranks. Cost: with switches, S beta sent, since they read a rank's own part
// through its port, too, and S/n beta received; otherwise (n-1)/n S beta received, which the cost law states. No copy,
// and two flag rounds. Entry flags: all inputs are valid. Exit flags: all inputs have been read.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchMapped : public Entry<Algorithm> {
 public:
  SwitchMapped()
      : Entry(Collective::reduce_scatter, "switch_mapped", "switches add the inputs of all ranks, S out of each rank") {
  }

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
      sources.push_back(all(input(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets, Fold::complete);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& switch_mapped_reduce_scatter() { return instance_of<SwitchMapped>(); }

}  // namespace tutti
