// Balanced binary tree with the ranks in in-order. Rank 0 is the root and has one child; odd ranks are leaves. The
// height of a node is the index of its lowest set bit.
#pragma once

#include <bit>
#include <optional>

#include "src/plan/problem.h"

namespace tutti {

struct TreeNode {
  std::optional<Rank> parent;
  std::optional<Rank> below, above;  // Children with subtrees of lower and of higher ranks.
};

inline TreeNode binary_tree(Rank n, Rank self) {
  TreeNode node;
  const Rank bit = self == 0 ? std::bit_ceil(n) : self & (~self + 1);
  if (self > 0) {
    const Rank up = (self ^ bit) | bit << 1;
    node.parent = up < n ? up : self ^ bit;
    if (bit > 1) node.below = self - bit / 2;
  }
  Rank step = bit / 2;
  while (step > 0 && self + step >= n) step /= 2;
  if (step > 0) node.above = self + step;
  return node;
}

// The same tree with ranks rotated by `root`, which becomes the root.
inline TreeNode binary_tree(Rank n, Rank self, Rank root) {
  TreeNode node = binary_tree(n, (self + n - root) % n);
  for (std::optional<Rank>* rank : {&node.parent, &node.below, &node.above}) {
    if (*rank) *rank = (**rank + root) % n;
  }
  return node;
}

// Mean number of hops from a rank to the root. The chain of `above` children starts at rank 0; each has a perfect tree
// below it. Child and subtree have 2^height ranks, and the child is at `depth`.
inline double mean_depth(Rank ranks) {
  double total = 0, depth = 1;
  for (Rank left = ranks - 1; left > 0; left -= std::bit_floor(left), ++depth) {
    const double height = std::bit_width(left) - 1;
    total += (depth + height - 1) * std::bit_floor(left) + 1;
  }
  return total / ranks;
}

}  // namespace tutti
