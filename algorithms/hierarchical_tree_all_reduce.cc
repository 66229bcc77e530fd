// All-reduce over two trees of hosts: partial sums follow a chain through each host and a tree of hosts upwards, with a
// tree for each half of the data. The result returns the same way. Cost for k hosts of g ranks: 2(g-1) alpha + 2
// log2(k) alpha + 2 S beta when chunks are pipelined. A host's link carries 2 S per direction, through its two leaders.
// The order of ranks determines the leaders. Source: host_trees.h. The root sends the result in the down stage, as in
// double_binary_tree.
#include "algorithms/cost_law.h"
#include "algorithms/host_trees.h"

namespace tutti {
namespace {

class HierarchicalTree : public EntryOverHosts {
 public:
  HierarchicalTree()
      : EntryOverHosts(Collective::all_reduce, "hierarchical_tree",
                       "each half along chains inside hosts and its own tree of hosts, 2 S per host") {}

  Shape shape(const Problem&) const override { return {.units = 2, .rounds = 2, .stages = {0, 1}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const HostTreeSizes sizes(problem);
    const double hops = 2.0 * (sizes.largest - 1), depth = 2 * sizes.depth(), inner = (sizes.children() + 1) / 2;
    const double inside = sizes.largest > 2 ? 2 : sizes.largest - 1, across = inner + (sizes.smallest == 1 ? 0.5 : 0);
    CostLaw cost_law;
    cost_law.levels[0] = {.depth = hops, .chain = hops / 2, .sent = inside, .received = inside, .messages = 4 * inside};
    cost_law.levels[1] = {.depth = depth,
                          .chain = depth / 2,
                          .sent = across,
                          .received = across,
                          .messages = 4 * across,
                          .between = inner + 0.5};
    cost_law.folded = std::max(sizes.largest > 2 ? 1.0 : 0.5, (sizes.children() + (sizes.largest > 1 ? 1 : 0)) / 2);
    cost_law.longest = 0.5;
    cost_law.units = 2;
    cost_law.rounded = sizes.rounded() + 1;
    return cost_law;
  }

  // Up: starts with the tree in which this rank is lower. Down: starts with the other tree. Data arrive earlier there.
  void emit(const Problem& problem, Rank self, std::uint32_t round, Steps& steps) const override {
    const HostTrees trees(problem, std::nullopt);
    HostTreeNode first = trees.node(self, 0), second = trees.node(self, 1);
    const bool up = round == 0;
    if (second.is_lower_than(first) == up) std::swap(first, second);
    for (const HostTreeNode& node : {first, second}) up ? send_up(node, steps) : send_down(node, steps);
  }

 private:
  static void send_up(const HostTreeNode& node, Steps& steps) {
    std::vector<Operand> sources;
    for (const Rank child : node.children) sources.push_back(lane(child, 1, node.half));
    sources.push_back(input(node.half));
    const Operand target = node.parent ? lane(*node.parent, 1, node.half) : output(node.half);
    steps.add(sources, {&target, 1}, node.parent ? Fold::partial : Fold::complete);
  }

  static void send_down(const HostTreeNode& node, Steps& steps) {
    std::vector<Operand> targets;
    if (node.parent) targets.push_back(output(node.half));
    for (const Rank child : node.children) targets.push_back(lane(child, 1, node.half));
    const Operand source = node.parent ? lane(*node.parent, 1, node.half) : output(node.half);
    if (!targets.empty()) steps.add({&source, 1}, targets);
  }
};

}  // namespace

const Algorithm& hierarchical_tree_all_reduce() { return instance_of<HierarchicalTree>(); }

}  // namespace tutti
