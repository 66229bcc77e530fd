// Broadcast in mapped memory: the root stores its block into every rank's output. Cost: (n-1) S beta, all at the root.
// Pushed instead of pulled: a cache line that peers have read is slow to write for its owner, who usually writes it
// next. Entry flags: the root may write. Exit flags: the root has written.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class DirectMapped : public Entry<Algorithm> {
 public:
  DirectMapped()
      : Entry(Collective::broadcast, "direct_mapped", "the root stores its block in the memory of all peers, (n-1) S") {
  }

  Shape shape(const Problem&) const override { return {.rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;  // Flags are exchanged with the root only.
    CostLaw cost_law = with_root(problem, {.depth = 2, .sent = others, .messages = 2 * others});
    cost_law.copied = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (self != problem.root) {
      if (round == 0) steps.signal(problem.root);
      if (round == 2) steps.await(problem.root);
      return;
    }
    if (round != 1) return;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    std::vector<Operand> sources = flags, targets;
    sources.push_back(input(0));
    for (Rank i = problem.in_place ? 1 : 0; i < n; ++i) targets.push_back(at((self + i) % n, output(0)));
    targets.insert(targets.end(), flags.begin(), flags.end());
    if (!targets.empty()) steps.add(sources, targets);
  }
};

}  // namespace

const Algorithm& direct_mapped_broadcast() { return instance_of<DirectMapped>(); }

}  // namespace tutti
