// Chain broadcast: every rank forwards to the next one, in rank order from the root. Cost: (n-1) alpha + S beta when
// chunks are pipelined: full bandwidth, maximum latency. A single round, so that both slices and chunks are pipelined.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Chain : public Entry<Algorithm> {
 public:
  Chain() : Entry(Collective::broadcast, "chain", "along a chain of ranks, n-1 hops, S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double hops = problem.ranks - 1, inner = problem.ranks > 2 ? 1 : 0;
    CostLaw cost_law =
        with_pipeline(problem, {.depth = hops, .chain = hops, .sent = 1, .received = inner, .messages = 1 + inner},
                      PipelineKind::chain);
    cost_law.copied = 1 - inner;
    cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank n = problem.ranks;
    const bool is_root = self == problem.root;
    const Rank next = (self + 1) % n;
    std::vector<Operand> targets;
    if (!is_root || !problem.in_place) targets.push_back(output(0));
    if (next != problem.root) targets.push_back(lane(next, 1));
    const Operand source = is_root ? input(0) : lane((self + n - 1) % n, 1);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& chain_broadcast() { return instance_of<Chain>(); }

}  // namespace tutti
