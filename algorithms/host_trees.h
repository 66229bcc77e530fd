// Two trees over all ranks of several hosts, one per half of the data. A chain connects the ranks of each host; its
// first rank, the leader, connects the host to the tree of hosts (two_trees.h). The chains of the second tree have the
// opposite direction, so the ranks at both ends of a host are leaders. In the host of a root, the chains wrap around
// and start at the root. The same ranks remain leaders, since they are near a NIC port. Source: two_trees.h, applied to
// hosts instead of ranks; chains inside hosts as in NCCL's trees.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/host_map.h"
#include "algorithms/ranges.h"
#include "algorithms/two_trees.h"

namespace tutti {

struct HostTreeNode {
  std::uint16_t half = 0;  // Half of the data; also the tag of the tree's lanes.
  std::optional<Rank> parent;
  std::vector<Rank> children;  // On other hosts first, then on this host.
  Rank behind = 0;             // Ranks of this host that follow in the chain.
  bool has_hosts = false;      // Other hosts are among its descendants.

  // True if this node is closer to the leaves than the same rank's node in the other tree.
  bool is_lower_than(const HostTreeNode& other) const {
    return has_hosts != other.has_hosts ? !has_hosts : behind < other.behind;
  }
};

class HostTrees {
 public:
  // `root` becomes the root of both trees. Without it, the leaders of the first host are the roots.
  HostTrees(const Problem& problem, std::optional<Rank> root)
      : map_(problem), root_(root), home_(root ? map_.host_of(*root) : 0), trees_(map_.hosts(), home_) {}

  HostTreeNode node(Rank self, std::uint16_t half) const {
    const Rank here = map_.host_of(self);
    const Chain chain = chain_of(here, half);
    const Rank position = chain.position_of(self), leader_position = chain.position_of(leader_of(here, half));
    const TreeNode host = trees_.node(here, half);
    HostTreeNode node{.half = half, .parent = {}, .children = {}, .behind = chain.size - 1 - position};
    node.has_hosts = leader_position >= position && (host.below || host.above);
    if (position > 0) node.parent = chain.at(position - 1);
    else if (host.parent) node.parent = leader_of(*host.parent, half);
    for (const std::optional<Rank>& below : {host.below, host.above})
      if (below && position == leader_position) node.children.push_back(leader_of(*below, half));
    if (node.behind > 0) node.children.push_back(chain.at(position + 1));
    return node;
  }

 private:
  // All ranks of a host in ascending or descending order, from the first one, wrapping around.
  struct Chain {
    Rank first, size, leader;
    bool upwards;

    Rank position_of(Rank rank) const { return (upwards ? rank + size - leader : leader + size - rank) % size; }
    Rank at(Rank position) const { return first + (leader - first + (upwards ? position : size - position)) % size; }
  };

  // In the root's host the chain has the opposite direction, so that it leads from the leader to the root without
  // wrapping around.
  Chain chain_of(Rank host, std::uint16_t half) const {
    const bool has_root = root_ && host == home_;
    return {.first = map_.first(host),
            .size = map_.size(host),
            .leader = has_root ? *root_ : leader_of(host, half),
            .upwards = (half == 0) != has_root};
  }
  Rank leader_of(Rank host, std::uint16_t half) const { return half == 0 ? map_.first(host) : map_.end(host) - 1; }

  HostMap map_;
  std::optional<Rank> root_;
  Rank home_;
  TwoTrees trees_;
};

// Common terms of the trees' costs, for the direction up. In blocks, of which each tree has a half.
struct HostTreeSizes {
  explicit HostTreeSizes(const Problem& problem)
      : hosts(static_cast<Rank>(problem.groups[0].size())), smallest(problem.groups[0][0]), largest(smallest) {
    for (const Rank size : problem.groups[0]) {
      smallest = std::min(smallest, size);
      largest = std::max(largest, size);
    }
  }
  double depth() const { return log2_rounded_up(hosts); }                // Hops between hosts.
  double children() const { return hosts > 3 ? 2 : hosts > 2 ? 1 : 0; }  // For an inner host other than the root's.
  double rounded() const { return (largest - 1) / 2.0 + mean_depth(hosts); }
  Rank hosts, smallest, largest;
};

}  // namespace tutti
