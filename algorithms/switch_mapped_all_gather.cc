// All-gather in mapped memory, to which switches multicast (NCCL: NVLS with registered buffers). Each rank stores its
// block into the outputs of all ranks. Cost: with switches, S/n beta sent, and S beta received, since a rank's own
// block comes back to it; otherwise (n-1)/n S beta sent, which the cost law states. No copy, and two flag rounds. Entry
// flags: all outputs may be written. Exit flags: all outputs are written.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchMapped : public Entry<Algorithm> {
 public:
  SwitchMapped()
      : Entry(Collective::all_gather, "switch_mapped",
              "switches store the block of each rank in the outputs of all, S into each rank") {}

  Shape shape(const Problem&) const override { return {.rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, problem.ranks - 1, 0);
    cost_law.copied = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {all(output(self))};
      sources.push_back(input(0));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& switch_mapped_all_gather() { return instance_of<SwitchMapped>(); }

}  // namespace tutti
