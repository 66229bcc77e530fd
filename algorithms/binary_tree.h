// The balanced binary tree whose in-order walk visits ranks 0, 1, ..., n - 1. Rank 0 is the root and has one child;
// odd ranks are leaves. A node sits at the height of its lowest set bit.
#pragma once

#include <bit>
#include <optional>

#include "src/plan/problem.h"

namespace tutti {

struct TreeNode {
  std::optional<Rank> parent;
  std::optional<Rank> below, above;  // Children: the subtree of lower ranks, and that of higher ranks.
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

// The same tree with the ranks rotated so that `root` is its root.
inline TreeNode binary_tree(Rank n, Rank self, Rank root) {
  TreeNode node = binary_tree(n, (self + n - root) % n);
  for (std::optional<Rank>* rank : {&node.parent, &node.below, &node.above}) {
    if (*rank) *rank = (**rank + root) % n;
  }
  return node;
}

// Messages on the way from a rank to the root, in the mean. A child above its parent is the top of what is left:
// itself, at `depth`, and a perfect tree below it, together 2^height ranks.
inline double mean_depth(Rank ranks) {
  double total = 0, depth = 1;
  for (Rank left = ranks - 1; left > 0; left -= std::bit_floor(left), ++depth) {
    const double height = std::bit_width(left) - 1;
    total += (depth + height - 1) * std::bit_floor(left) + 1;
  }
  return total / ranks;
}

}  // namespace tutti
