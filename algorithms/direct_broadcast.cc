// Direct broadcast: the root sends to all ranks in one step. Cost: alpha + (n-1) S beta. For few ranks or small
// messages.
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class Direct : public Entry<Algorithm> {
 public:
  Direct() : Entry(Collective::broadcast, "direct", "the root sends to all ranks, 1 hop, (n-1) S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const double others = problem.ranks - 1;
    CostLaw cost_law = with_root(problem, {.depth = 1, .chain = 1, .sent = others, .messages = others});
    cost_law.copied = cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const Rank n = problem.ranks;
    if (self != problem.root) return steps.recv(problem.root, output(0));
    std::vector<Operand> targets;
    if (!problem.in_place) targets.push_back(output(0));
    for (Rank i = 1; i < n; ++i) targets.push_back(lane((self + i) % n, 1));
    const Operand source = input(0);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& direct_broadcast() { return instance_of<Direct>(); }

}  // namespace tutti
