// Tree all-reduce: sums go up a balanced binary tree in rank order, the result comes down. 2 log2(n) a + 2 S b once
// pieces stream. "Double" is only the embedding: two channels, one with the ranks mirrored, fill both directions.
// P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009.
// The root turns round in the down stage: in the up stage its message would cross stages, and a skewed loop would need
// ever more slots.
#include "algorithms/binary_tree.h"
#include "algorithms/entry.h"

namespace tutti {
namespace {

class DoubleBinaryTree : public Entry<Algorithm> {
 public:
  DoubleBinaryTree()
      : Entry(Collective::all_reduce, "double_binary_tree", "up and down a binary tree, 2 log2(n) deep, 2 S") {}

  Shape shape(const Problem&) const override { return {.rounds = 2, .stages = {0, 1}}; }

  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const TreeNode node = binary_tree(problem.ranks, self);
    round == 0 ? up(node, steps) : down(node, steps);
  }

 private:
  static void up(const TreeNode& node, Steps& steps) {
    std::vector<Operand> sources;
    if (node.below) sources.push_back(lane(*node.below, 1));
    sources.push_back(input(0));
    if (node.above) sources.push_back(lane(*node.above, 1));
    const Operand target = node.parent ? lane(*node.parent, 1) : output(0);
    steps.add(sources, {&target, 1}, node.parent ? Fold::partial : Fold::complete);
  }

  static void down(const TreeNode& node, Steps& steps) {
    std::vector<Operand> targets;
    if (node.parent) targets.push_back(output(0));
    if (node.below) targets.push_back(lane(*node.below, 1));
    if (node.above) targets.push_back(lane(*node.above, 1));
    const Operand source = node.parent ? lane(*node.parent, 1) : output(0);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& double_binary_tree_all_reduce() {
  static const DoubleBinaryTree algorithm;
  return algorithm;
}

}  // namespace tutti
