// Reduction up a balanced binary tree. Cost: log2(n) alpha + S beta when chunks are pipelined; inner ranks receive 2 S.
#include "algorithms/binary_tree.h"
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class BinaryTree : public Entry<Algorithm> {
 public:
  BinaryTree() : Entry(Collective::reduce, "binary_tree", "up a binary tree, log2(n) hops, S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const Rank n = problem.ranks;
    const double depth = log2_rounded_up(n), below = n > 3 ? 2 : 1, above = n > 2 ? 1 : 0;
    CostLaw cost_law = with_arbitrary_ranks(
        problem, {.depth = depth, .chain = depth, .sent = above, .received = below, .messages = below + above});
    cost_law.folded = below;
    cost_law.longest = 1;
    cost_law.rounded = mean_depth(n);
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const TreeNode node = binary_tree(problem.ranks, self, problem.root);
    std::vector<Operand> sources;
    if (node.below) sources.push_back(lane(*node.below, 1));
    sources.push_back(input(0));
    if (node.above) sources.push_back(lane(*node.above, 1));
    const Operand target = node.parent ? lane(*node.parent, 1) : output(0);
    steps.add(sources, {&target, 1}, node.parent ? Fold::partial : Fold::complete);
  }
};

}  // namespace

const Algorithm& binary_tree_reduce() { return instance_of<BinaryTree>(); }

}  // namespace tutti
