// Two balanced binary trees over the same nodes, one per half of the data, with the same root. A node that has children
// in one tree is a leaf of the other, so that all links carry the same in both directions; the root has one child in
// each. Source: P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", 2009.
#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/binary_tree.h"

namespace tutti {

class TwoTrees {
 public:
  static constexpr std::uint16_t kHalves = 2;

  explicit TwoTrees(Rank nodes, Rank root = 0) : nodes_(nodes), root_(root) {}

  TreeNode node(Rank self, std::uint16_t half) const {
    TreeNode node = binary_tree(nodes_, position_of(self, half));
    for (std::optional<Rank>* each : {&node.parent, &node.below, &node.above})
      if (*each) *each = at(**each, half);
    return node;
  }

  // Hops from a node to the root, and the maximum of them.
  Rank depth_of(Rank self, std::uint16_t half) const {
    Rank hops = 0;
    for (TreeNode each = node(self, half); each.parent; each = node(*each.parent, half)) ++hops;
    return hops;
  }
  Rank depth() const { return static_cast<Rank>(std::bit_width(nodes_ - 1)); }

 private:
  // Position of a node in a tree; the root has position 0. Odd positions are leaves. In the second tree other nodes
  // have them: it is the mirror image if that swaps odd and even positions, otherwise it is shifted by one.
  Rank position_of(Rank self, std::uint16_t half) const {
    const Rank position = (self + nodes_ - root_) % nodes_;
    if (half == 0 || position == 0) return position;
    return nodes_ % 2 == 1 ? nodes_ - position : position % (nodes_ - 1) + 1;
  }
  Rank at(Rank position, std::uint16_t half) const {
    if (half == 1 && position > 0)
      position = nodes_ % 2 == 1 ? nodes_ - position : (position + nodes_ - 3) % (nodes_ - 1) + 1;
    return (position + root_) % nodes_;
  }

  Rank nodes_, root_;
};

}  // namespace tutti
