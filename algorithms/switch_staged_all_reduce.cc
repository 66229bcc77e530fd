// Two-shot all-reduce in the scratch of all ranks, in which switches add and multicast (NCCL: NVLS). Each rank copies
// its input into its scratch, reads the sum of its unit over all ranks, and stores it into the scratch of all, from
// which they copy it to their outputs. Cost: with switches, (1 + 1/n) S beta in each direction; otherwise
// 2(n-1)/n S beta, which the cost law states. Two flag rounds and two copies of S. The three stages overlap across
// chunks, as in two_shot_staged. Units [0, n) of scratch are contributions, units [n, 2n) are results.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchStaged : public Entry<Algorithm> {
 public:
  SwitchStaged()
      : Entry(Collective::all_reduce, "switch_staged",
              "switches add the scratch of all ranks and store the sums to all, (1 + 1/n) S and two copies") {}

  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = 2 * problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = 1 - 1.0 / problem.ranks;
    CostLaw cost_law = in_peers_memory(problem, others, others);
    cost_law.folded = others;
    cost_law.copied = 2;
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {all(scratch(n + self))};
      sources.push_back(all(scratch(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      return steps.add(sources, targets, Fold::complete);
    }
    for (Rank unit = 0; unit < n; ++unit) {
      std::vector<Operand> sources, targets;
      if (round == 2 && unit == 0) sources = flags;
      sources.push_back(round == 0 ? input(unit) : scratch(n + unit));
      targets.push_back(round == 0 ? scratch(unit) : output(unit));
      if (round == 0 && unit == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    }
  }
};

}  // namespace

const Algorithm& switch_staged_all_reduce() { return instance_of<SwitchStaged>(); }

}  // namespace tutti
