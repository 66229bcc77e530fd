// All-reduce in mapped memory, in which switches add and multicast (NCCL: NVLS with registered buffers). Each rank
// reads the sum of its unit over the inputs of all ranks, and stores it into the outputs of all. Cost: with switches,
// (1 + 1/n) S beta in each direction; otherwise 2(n-1)/n S beta, as for two_shot_mapped, which the cost law states. No
// copy, and two flag rounds. Works in place: between entry and exit, only rank r accesses unit r.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchMapped : public Entry<Algorithm> {
 public:
  SwitchMapped()
      : Entry(Collective::all_reduce, "switch_mapped",
              "switches add the inputs of all ranks and store the sums to all outputs, (1 + 1/n) S") {}

  Shape shape(const Problem& problem) const override { return {.units = problem.ranks, .rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = 1 - 1.0 / problem.ranks;
    CostLaw cost_law = in_peers_memory(problem, others, others);
    cost_law.folded = others;
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {all(output(self))};
      sources.push_back(all(input(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets, Fold::complete);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& switch_mapped_all_reduce() { return instance_of<SwitchMapped>(); }

}  // namespace tutti
