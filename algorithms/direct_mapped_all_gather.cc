// All-gather in mapped memory: each rank stores its block into every rank's output. Cost: (n-1)/n S beta and two flag
// rounds. Entry flags: all outputs may be written. Exit flags: all outputs are written.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class DirectMapped : public Entry<Algorithm> {
 public:
  DirectMapped()
      : Entry(Collective::all_gather, "direct_mapped",
              "each rank stores its block in the memory of all peers, (n-1)/n S") {}

  Shape shape(const Problem&) const override { return {.rounds = 3, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    CostLaw cost_law = in_peers_memory(problem, problem.ranks - 1, 0);
    cost_law.copied = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const Rank n = problem.ranks;
    const std::vector<Operand> flags = flags_of_peers(self, n);
    if (round == 1) {
      std::vector<Operand> sources = flags, targets;
      sources.push_back(input(0));
      for (Rank i = problem.in_place ? 1 : 0; i < n; ++i) targets.push_back(at((self + i) % n, output(self)));
      targets.insert(targets.end(), flags.begin(), flags.end());
      if (!targets.empty()) steps.add(sources, targets);
    } else if (n > 1) {
      round == 0 ? steps.add({}, flags) : steps.add(flags, {});
    }
  }
};

}  // namespace

const Algorithm& direct_mapped_all_gather() { return instance_of<DirectMapped>(); }

}  // namespace tutti
