// Broadcast in peers' memory with everybody's help: rank r reads unit r of the root's block and stores it into every
// rank's output. (n-1)/n S b per rank instead of (n-1) S b at the root. In place the root's own lines are stored again
// by their readers: a line that was only read is slow to write for its owner.
// Entry: the root's block is there, all outputs may be written. Exit: all is done.
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class SplitMapped : public Entry<Algorithm> {
 public:
  SplitMapped()
      : Entry(Collective::broadcast, "split_mapped", "each rank spreads its unit in peers' memory, (n-1)/n S") {}

  Shape shape(const Problem& problem) const override { return {.units = problem.ranks, .rounds = 3, .stages = {0}}; }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      const bool is_there = problem.in_place && self == problem.root;
      std::vector<Operand> sources = flags, targets;
      sources.push_back(at(problem.root, input(self)));
      for (Rank i = is_there ? 1 : 0; i < n; ++i) targets.push_back(at((self + i) % n, output(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      if (!targets.empty()) steps.add(sources, targets);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& split_mapped_broadcast() {
  static const SplitMapped algorithm;
  return algorithm;
}

}  // namespace tutti
