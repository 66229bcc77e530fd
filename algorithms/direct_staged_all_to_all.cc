// All-to-all in peers' scratch, for buffers that peers cannot access: each rank copies its blocks into its scratch, and
// reads its own block of all peers from theirs. Cost: (n-1)/n S beta, two flag rounds and a copy of (n-1)/n S. The
// stages overlap across chunks. Flags after the first stage: all blocks are copied. Flags after the second stage: all
// are read.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class DirectStaged : public Entry<Algorithm> {
 public:
  DirectStaged()
      : Entry(Collective::all_to_all, "direct_staged",
              "each rank reads its block of all peers from their scratch, (n-1)/n S and a copy of (n-1)/n S") {}

  Shape shape(const Problem& problem) const override {
    return {.scratch = problem.ranks, .rounds = 3, .stages = {0, 1, 2}};
  }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, 0, problem.ranks - 1);
    cost_law.copied = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    for (Rank i = 1; round == 0 && i < n; ++i) {
      const Rank peer = (self + i) % n;
      const Operand source = input(peer);
      std::vector<Operand> targets = {scratch(peer)};
      if (i == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add({&source, 1}, targets);
    }
    for (Rank i = 1; round == 1 && i < n; ++i) {
      const Rank peer = (self + i) % n;
      std::vector<Operand> sources, targets = {output(peer)};
      if (i == 1) sources = flags;
      sources.push_back(at(peer, scratch(self)));
      if (i == n - 1) targets.insert(targets.end(), flags.begin(), flags.end());
      steps.add(sources, targets);
    }
    if (round < 2) return;
    // The own block is copied last: among copies from or to scratch, it would be a step of its own.
    std::vector<Operand> sources = flags, targets;
    if (!problem.in_place) {
      sources.push_back(input(self));
      targets.push_back(output(self));
    }
    if (!sources.empty()) steps.add(sources, targets);
  }
};

}  // namespace

const Algorithm& direct_staged_all_to_all() { return instance_of<DirectStaged>(); }

}  // namespace tutti
