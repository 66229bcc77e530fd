// Broadcast in the scratch of all ranks, to which switches multicast. The root stores its block into the scratch of
// all, from which the others copy it to their outputs. Cost: with switches, S beta in each direction of the root, as
// its own store comes back to it; otherwise (n-1) S beta sent by the root, which the cost law states. Two flag rounds
// and a copy of S. The stages overlap across chunks. Flags of the first stage: scratch may be written. Flags after the
// second stage: the block is stored.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SwitchStaged : public Entry<Algorithm> {
 public:
  SwitchStaged()
      : Entry(Collective::broadcast, "switch_staged",
              "switches store the root's block in the scratch of all ranks, S and a copy of S") {}

  Shape shape(const Problem&) const override { return {.scratch = 1, .rounds = 3, .stages = {0, 1, 2}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;  // Flags are exchanged with the root only.
    CostLaw cost_law = with_root(problem, {.depth = 2, .sent = others, .messages = 2 * others});
    cost_law.copied = 2;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const bool is_root = self == problem.root;
    if (round == 0 && is_root && !problem.in_place) steps.copy(input(0), output(0));
    if (round == 0 && !is_root) steps.signal(problem.root);
    if (round == 1 && is_root && n > 1) {
      const std::vector<Operand> flags = flags_of_peers(self, n);
      std::vector<Operand> sources = flags, targets = {all(scratch(0))};
      sources.push_back(input(0));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    }
    if (round == 2 && !is_root) steps.fold({flag(problem.root), scratch(0)}, {output(0)});
  }
};

}  // namespace

const Algorithm& switch_staged_broadcast() { return instance_of<SwitchStaged>(); }

}  // namespace tutti
