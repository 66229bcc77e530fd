// Broadcast down a balanced binary tree. Cost: log2(n) alpha + 2 S beta when chunks are pipelined.
#include "algorithms/binary_tree.h"
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class BinaryTree : public Entry<Algorithm> {
 public:
  BinaryTree() : Entry(Collective::broadcast, "binary_tree", "down a binary tree, log2(n) hops, 2 S") {}

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const Rank n = problem.ranks;
    const double depth = log2_rounded_up(n), below = n > 3 ? 2 : 1, above = n > 2 ? 1 : 0;
    CostLaw cost_law = with_arbitrary_ranks(
        problem, {.depth = depth, .chain = depth, .sent = below, .received = above, .messages = below + above});
    cost_law.copied = 1 - above;
    cost_law.longest = 1;
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const TreeNode node = binary_tree(problem.ranks, self, problem.root);
    std::vector<Operand> targets;
    if (node.parent || !problem.in_place) targets.push_back(output(0));
    if (node.below) targets.push_back(lane(*node.below, 1));
    if (node.above) targets.push_back(lane(*node.above, 1));
    const Operand source = node.parent ? lane(*node.parent, 1) : input(0);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& binary_tree_broadcast() { return instance_of<BinaryTree>(); }

}  // namespace tutti
