// Broadcast down a balanced binary tree, and reduction up the same tree. Cost, when chunks are pipelined: log2(n) alpha
// + 2 S beta for a broadcast; log2(n) alpha + S beta for a reduction, in which inner ranks receive 2 S.
#include "algorithms/binary_tree.h"

#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

class BinaryTree : public Entry<Algorithm> {
 public:
  using Entry::Entry;

  Shape shape(const Problem&) const override { return {.rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const Rank n = problem.ranks;
    const double depth = log2_rounded_up(n), below = n > 3 ? 2 : 1, above = n > 2 ? 1 : 0;
    const bool up = reduces(problem.collective);
    const Traffic own = {.depth = depth,
                         .chain = depth,
                         .sent = up ? above : below,
                         .received = up ? below : above,
                         .messages = below + above};
    CostLaw cost_law = with_arbitrary_ranks(problem, own);
    cost_law.longest = 1;
    if (up) {
      cost_law.folded = below;
      cost_law.rounded = mean_depth(n);
    } else {
      cost_law.copied = 1 - above;
    }
    return cost_law;
  }

  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const TreeNode node = binary_tree(problem.ranks, self, problem.root);
    std::vector<Operand> sources, targets;
    if (reduces(problem.collective)) {
      if (node.below) sources.push_back(lane(*node.below, 1));
      sources.push_back(input(0));
      if (node.above) sources.push_back(lane(*node.above, 1));
      targets.push_back(node.parent ? lane(*node.parent, 1) : output(0));
    } else {
      sources.push_back(node.parent ? lane(*node.parent, 1) : input(0));
      if (node.parent || !problem.in_place) targets.push_back(output(0));
      if (node.below) targets.push_back(lane(*node.below, 1));
      if (node.above) targets.push_back(lane(*node.above, 1));
    }
    const bool complete = reduces(problem.collective) && !node.parent;
    if (!targets.empty()) steps.add(sources, targets, complete ? Fold::complete : Fold::partial);
  }
};

}  // namespace

const Algorithm& binary_tree_broadcast() {
  static const BinaryTree algorithm(Collective::broadcast, "binary_tree", "down a binary tree, log2(n) hops, 2 S");
  return algorithm;
}

const Algorithm& binary_tree_reduce() {
  static const BinaryTree algorithm(Collective::reduce, "binary_tree", "up a binary tree, log2(n) hops, S");
  return algorithm;
}

}  // namespace tutti
