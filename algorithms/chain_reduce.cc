// Chain reduction: the partial sum moves from rank to rank and ends at the root. Cost: (n-1) alpha + S beta when chunks
// are pipelined.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Chain : public Entry<Algorithm> {
 public:
  Chain() : Entry(Collective::reduce, "chain", "along a chain of ranks, n-1 hops, S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double hops = problem.ranks - 1, inner = problem.ranks > 2 ? 1 : 0;
    CostLaw cost_law =
        with_pipeline(problem, {.depth = hops, .chain = hops, .sent = inner, .received = 1, .messages = 1 + inner},
                      PipelineKind::chain);
    cost_law.folded = cost_law.longest = 1;
    cost_law.rounded = hops / 2;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank n = problem.ranks;
    const bool is_root = self == problem.root;
    const Rank previous = (self + n - 1) % n;  // The chain begins with the root's successor.
    const Operand target = is_root ? output(0) : lane((self + 1) % n, 1);
    std::vector<Operand> sources;
    if (previous != problem.root) sources.push_back(lane(previous, 1));
    sources.push_back(input(0));
    steps.add(sources, {&target, 1}, is_root ? Fold::complete : Fold::partial);
  }
};

}  // namespace

const Algorithm& chain_reduce() { return instance_of<Chain>(); }

}  // namespace tutti
