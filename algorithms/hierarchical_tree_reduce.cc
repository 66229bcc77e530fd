// Reduction over two trees of hosts: the partial sum of each half of the data follows a chain through each host and a
// tree of hosts to the root. Cost for k hosts of g ranks: (g-1) alpha + log2(k) alpha + S beta when chunks are
// pipelined. A host's link carries S per direction, through its two leaders. Source: host_trees.h.
#include "algorithms/cost_law.h"
#include "algorithms/host_trees.h"

namespace tutti {
namespace {

class HierarchicalTree : public EntryOverHosts {
 public:
  HierarchicalTree()
      : EntryOverHosts(Collective::reduce, "hierarchical_tree",
                       "each half along chains inside hosts and up a tree of hosts, S per host") {}

  Shape shape(const Problem&) const override { return {.units = 2, .rounds = 1, .stages = {0}}; }

  CostLaw cost_law(const Problem& problem) const override {
    const HostTreeSizes sizes(problem);
    const double hops = 2.0 * (sizes.largest - 1), depth = sizes.depth(), shared = sizes.largest > 1 ? 1 : 0;
    const bool alone = sizes.smallest == 1;  // A rank without others on its host is the leader in both trees.
    CostLaw cost_law;
    cost_law.levels[0] = {.depth = hops,
                          .chain = hops / 2,
                          .sent = sizes.largest > 2 ? 1 : shared / 2,
                          .received = shared,
                          .messages = sizes.largest > 2 ? 4 : 3 * shared};
    cost_law.levels[1] = {.depth = depth,
                          .chain = depth / 2,
                          .sent = alone ? 1 : 0.5,
                          .received = alone ? 1 : std::max(sizes.children(), 1.0) / 2,
                          .messages = (alone ? 2 : 1) + std::max(sizes.children(), alone ? 2.0 : 1.0),
                          .between = 1};
    cost_law.folded = 1 + shared / 2;
    cost_law.longest = 0.5;
    cost_law.units = 2;
    // Sums of other hosts also travel from the leader of the root's host to the root. The two halves come from opposite
    // ends of the chain.
    const HostMap map(problem);
    const double farther = (map.size(map.host_of(problem.root)) - 1) / 2.0;
    cost_law.rounded = sizes.rounded() + (1 - 1.0 / sizes.hosts) * farther;
    return cost_law;
  }

  // Starts with the tree in which this rank is lower, because data arrive earlier there.
  void emit(const Problem& problem, Rank self, std::uint32_t, Steps& steps) const override {
    const HostTrees trees(problem, problem.root);
    HostTreeNode first = trees.node(self, 0), second = trees.node(self, 1);
    if (second.is_lower_than(first)) std::swap(first, second);
    for (const HostTreeNode& node : {first, second}) {
      std::vector<Operand> sources;
      for (const Rank child : node.children) sources.push_back(lane(child, 1, node.half));
      sources.push_back(input(node.half));
      const Operand target = node.parent ? lane(*node.parent, 1, node.half) : output(node.half);
      steps.add(sources, {&target, 1}, node.parent ? Fold::partial : Fold::complete);
    }
  }
};

}  // namespace

const Algorithm& hierarchical_tree_reduce() { return instance_of<HierarchicalTree>(); }

}  // namespace tutti
