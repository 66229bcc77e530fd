// Broadcast in peers' scratch by all ranks, for buffers that peers cannot access: the root copies its block into its
// scratch. Rank r reads unit r there and stores it into the scratch of every rank but the root, from which they copy it
// to their outputs. Cost: (n-1)/n S beta per rank, two flag rounds and a copy of S. The stages overlap across chunks.
// Flags after the first stage: the root's block is copied, and all ranks are in the call. Flags after the second stage:
// all units are stored. Scratch is the block at the root, and the result elsewhere.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SplitStaged : public Entry<Algorithm> {
 public:
  SplitStaged()
      : Entry(Collective::broadcast, "split_staged",
              "each rank stores a share of the block in the scratch of all peers, (n-1)/n S and a copy of S") {}

  Shape shape(const Problem& problem) const override {
    return {.units = problem.ranks, .scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, 1 - 1.0 / problem.ranks, 0);
    cost_law.copied = 2 - 1.0 / problem.ranks;
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    const bool is_root = self == problem.root;
    if (round == 0) {
      for (Rank unit = 0; is_root && unit < n; ++unit) {
        const Operand source = input(unit);
        std::vector<Operand> targets;
        if (unit != self) targets.push_back(scratch(unit));
        if (!problem.in_place) targets.push_back(output(unit));
        if (!targets.empty()) steps.add({&source, 1}, targets);
      }
      if (n > 1) steps.add({}, flags);
    } else if (round == 1 && n > 1) {
      std::vector<Operand> sources = flags, targets;
      sources.push_back(is_root ? input(self) : at(problem.root, scratch(self)));
      if (!is_root) targets.push_back(output(self));
      for (Rank i = 1; i < n; ++i) {
        const Rank peer = (self + i) % n;
        if (peer != problem.root) targets.push_back(at(peer, scratch(self)));
      }
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    } else if (round == 2 && n > 1) {
      steps.add(flags, {});
      for (Rank i = 1; i < n && !is_root; ++i) {
        const Rank unit = (self + i) % n;
        steps.copy(scratch(unit), output(unit));
      }
    }
  }
};

}  // namespace

const Algorithm& split_staged_broadcast() { return instance_of<SplitStaged>(); }

}  // namespace tutti
