// All-reduce over two binary trees, one per half of the data: partial sums go up, the result comes down. A rank that is
// an inner node of one tree is a leaf of the other. The second tree is the mirror image for even n. For odd n it is
// shifted by one rank, and only rank 0 is an inner node of both. Cost: 2 log2(n) alpha + 2 S beta when chunks are
// pipelined. A rank sends S/2 up and S down as an inner node, and S/2 up as a leaf. In a single tree, inner nodes would
// send 3 S. Source: P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", 2009. The root sends the result in the down stage. Sent in the up stage, its message would cross stages,
// and a skewed loop would need an unbounded number of slots.
#include "algorithms/binary_tree.h"
#include "algorithms/cost_law.h"
#include "algorithms/entry.h"
#include "algorithms/ranges.h"

namespace tutti {
namespace {

struct Tree {
  TreeNode node;
  std::uint32_t unit = 0;  // Half of the data.

  bool is_leaf() const { return !node.below && !node.above; }
  std::uint16_t tag() const { return static_cast<std::uint16_t>(unit); }
};

class DoubleBinaryTree : public Entry<Algorithm> {
 public:
  DoubleBinaryTree()
      : Entry(Collective::all_reduce, "double_binary_tree",
              "each half up and down its own binary tree, 2 log2(n) hops, 2 S") {}

  Shape shape(const Problem&) const override { return {.units = 2, .rounds = 2, .stages = {0, 1}}; }

  CostLaw cost_law(const Problem& problem) const override {
    // Each rank is an inner node of one tree and a leaf of the other.
    const Rank n = problem.ranks;
    const double depth = 2.0 * log2_rounded_up(n), children = n > 3 ? 2 : 1;
    const double sent = (children + (n > 2 ? 2 : 1)) / 2, received = sent;
    CostLaw cost_law = with_arbitrary_ranks(
        problem, {.depth = depth, .chain = depth / 2, .sent = sent, .received = received, .messages = 4 * sent});
    cost_law.folded = n > 2 ? 1 : 0.5;
    cost_law.longest = 0.5;
    cost_law.units = 2;
    cost_law.rounded = mean_depth(n) + 1;
    return cost_law;
  }

  // Leaves send up, and inner nodes forward down, before they wait for anything of the other tree.
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    Tree first = {.node = binary_tree(problem.ranks, self), .unit = 0};
    Tree second = {.node = other_tree(problem.ranks, self), .unit = 1};
    const bool up = round == 0;
    if (first.is_leaf() != up) std::swap(first, second);
    for (const Tree& tree : {first, second}) up ? send_up(tree, steps) : send_down(tree, steps);
  }

 private:
  static TreeNode other_tree(Rank n, Rank self) {
    if (n % 2 == 1) return binary_tree(n, self, 1 % n);
    TreeNode node = binary_tree(n, n - 1 - self);
    for (std::optional<Rank>* rank : {&node.parent, &node.below, &node.above}) {
      if (*rank) *rank = n - 1 - **rank;
    }
    return node;
  }

  static void send_up(const Tree& tree, Steps& steps) {
    const TreeNode& node = tree.node;
    std::vector<Operand> sources;
    if (node.below) sources.push_back(lane(*node.below, 1, tree.tag()));
    sources.push_back(input(tree.unit));
    if (node.above) sources.push_back(lane(*node.above, 1, tree.tag()));
    const Operand target = node.parent ? lane(*node.parent, 1, tree.tag()) : output(tree.unit);
    steps.add(sources, {&target, 1}, node.parent ? Fold::partial : Fold::complete);
  }

  static void send_down(const Tree& tree, Steps& steps) {
    const TreeNode& node = tree.node;
    std::vector<Operand> targets;
    if (node.parent) targets.push_back(output(tree.unit));
    if (node.below) targets.push_back(lane(*node.below, 1, tree.tag()));
    if (node.above) targets.push_back(lane(*node.above, 1, tree.tag()));
    const Operand source = node.parent ? lane(*node.parent, 1, tree.tag()) : output(tree.unit);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& double_binary_tree_all_reduce() { return instance_of<DoubleBinaryTree>(); }

}  // namespace tutti
