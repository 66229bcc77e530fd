// Broadcast in mapped memory by all ranks: rank r reads unit r of the root's block and stores it into the output of
// every rank but the root. The root copies its own block unless in place. Cost: (n-1)/n S beta per rank, instead of
// (n-1) S beta at the root. Entry flags: the root's block is valid and all outputs may be written. Exit flags: all
// outputs are written.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SplitMapped : public Entry<Algorithm> {
 public:
  SplitMapped()
      : Entry(Collective::broadcast, "split_mapped",
              "each rank stores a share of the block in the memory of all peers, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override { return {.units = problem.ranks, .rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    // Without the root's own copy.
    CostLaw cost_law = in_peers_memory(problem, 1 - 1.0 / problem.ranks, 0);
    cost_law.copied = 1;
    cost_law.units = problem.ranks;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (n == 1) {
      if (round == 1 && !problem.in_place) steps.copy(input(0), output(0));
      return;
    }
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 0) steps.add({}, flags);
    if (round == 2) steps.add(flags, {});
    if (round != 1) return;
    std::vector<Operand> sources = flags, targets;
    sources.push_back(at(problem.root, input(self)));
    for (Rank i = 0; i < n; ++i) {
      const Rank peer = (self + i) % n;
      if (peer != problem.root) targets.push_back(at(peer, output(self)));
    }
    targets.insert(targets.end(), flags.begin(), flags.end());
    steps.add(sources, targets);
    if (self == problem.root && !problem.in_place) steps.copy(input(0, n), output(0, n));
  }
};

}  // namespace

const Algorithm& split_mapped_broadcast() { return instance_of<SplitMapped>(); }

}  // namespace tutti
