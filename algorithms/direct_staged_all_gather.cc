// All-gather in peers' scratch, for buffers that peers cannot access: each rank copies its block into its scratch, and
// reads the blocks of all peers from theirs. Cost: (n-1)/n S beta, two flag rounds and a copy of S/n. The stages
// overlap across chunks. Flags after the first stage: all blocks are copied. Flags after the second stage: all are
// read.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class DirectStaged : public Entry<Algorithm> {
 public:
  DirectStaged()
      : Entry(Collective::all_gather, "direct_staged",
              "each rank reads the blocks of all peers from their scratch, (n-1)/n S and a copy of S/n") {}

  Shape shape(const Problem&) const override { return {.scratch = 1, .rounds = 3, .stages = {0, 1, 2}}; }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, 0, problem.ranks - 1);
    cost_law.copied = 2;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 0) {
      const Operand source = input(0);
      std::vector<Operand> targets = {scratch(0)};
      if (!problem.in_place) targets.push_back(output(self));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add({&source, 1}, targets);
    }
    for (Rank i = 1; round == 1 && i < n; ++i) {
      const Rank peer = (self + i) % n;
      std::vector<Operand> sources, targets = {output(peer)};
      if (i == 1) sources = flags;
      sources.push_back(at(peer, scratch(0)));
      if (i == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    }
    if (round == 2 && n > 1) steps.add(flags, {});
  }
};

}  // namespace

const Algorithm& direct_staged_all_gather() { return instance_of<DirectStaged>(); }

}  // namespace tutti
