// Reduce-scatter in peers' scratch, for buffers that peers cannot access: each rank copies the peers' blocks into its
// scratch, and reduces its block from all ranks' scratch, in rank order. Cost: (n-1)/n S beta read, two flag rounds and
// a copy of (n-1)/n S. The stages overlap across chunks. Flags after the first stage: all blocks are copied. Flags
// after the second stage: all are read.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class DirectStaged : public Entry<Algorithm> {
 public:
  DirectStaged()
      : Entry(Collective::reduce_scatter, "direct_staged",
              "each rank reduces its block from the scratch of all peers, (n-1)/n S and a copy of (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, 0, problem.ranks - 1);
    cost_law.folded = cost_law.copied = problem.ranks - 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    for (Rank i = 1; round == 0 && i < n; ++i) {
      const Rank block = (self + i) % n;
      const Operand source = input(block);
      std::vector<Operand> targets = {scratch(block)};
      if (i == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add({&source, 1}, targets);
    }
    if (round == 1) {
      std::vector<Operand> sources = flags, targets = {output(0)};
      for (Rank rank = 0; rank < n; ++rank) sources.push_back(rank == self ? input(self) : at(rank, scratch(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets, Fold::complete);
    }
    if (round == 2 && n > 1) steps.add(flags, {});
  }
};

}  // namespace

const Algorithm& direct_staged_reduce_scatter() { return instance_of<DirectStaged>(); }

}  // namespace tutti
