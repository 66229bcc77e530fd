// Two trees over all ranks of several hosts, one for each half of the data: a chain through each host, whose first rank
// speaks for it in a balanced binary tree of the hosts. The chain of the second tree goes the other way, so that a
// host's ranks at both ends speak for it, and a host that is inside the one tree is a leaf of the other. In the host of
// a root chains go round and end there; the same ranks speak for it, since they are those near a port.
// P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009,
// over hosts instead of ranks; chains inside hosts as in NCCL's trees.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/binary_tree.h"
#include "algorithms/host_map.h"
#include "algorithms/ranges.h"

namespace tutti {

struct HostTreeNode {
  std::uint16_t half = 0;  // Of the data; also the tag of the tree's lanes.
  std::optional<Rank> parent;
  std::vector<Rank> children;  // On other hosts, then on this one.
  Rank behind = 0;             // Ranks of this host that come behind it in the chain.
  bool has_hosts = false;      // Other hosts come behind it.

  // Whether it is nearer to the leaves than to the root, seen from the other tree.
  bool is_lower_than(const HostTreeNode& other) const {
    return has_hosts != other.has_hosts ? !has_hosts : behind < other.behind;
  }
};

class HostTrees {
 public:
  // `root`: of both trees. Without one they are led by the ends of the first host.
  HostTrees(const Problem& problem, std::optional<Rank> root)
      : map_(problem), root_(root), home_(root ? map_.host_of(*root) : 0) {}

  HostTreeNode node(Rank self, std::uint16_t half) const {
    const Rank here = map_.host_of(self);
    const Chain chain = chain_of(here, half);
    const Rank place = chain.place_of(self), speaker_place = chain.place_of(speaker(here, half));
    const TreeNode host = binary_tree(map_.hosts(), place_of(here, half));
    HostTreeNode node{.half = half, .parent = {}, .children = {}, .behind = chain.size - 1 - place};
    node.has_hosts = speaker_place >= place && (host.below || host.above);
    if (place > 0) node.parent = chain.at(place - 1);
    else if (host.parent) node.parent = speaker(host_at(*host.parent, half), half);
    for (const std::optional<Rank>& below : {host.below, host.above})
      if (below && place == speaker_place) node.children.push_back(speaker(host_at(*below, half), half));
    if (node.behind > 0) node.children.push_back(chain.at(place + 1));
    return node;
  }

 private:
  // All ranks of a host: upwards from the rank that leads it, or downwards, and round.
  struct Chain {
    Rank first, size, leader;
    bool upwards;

    Rank place_of(Rank rank) const { return (upwards ? rank + size - leader : leader + size - rank) % size; }
    Rank at(Rank place) const { return first + (leader - first + (upwards ? place : size - place)) % size; }
  };

  // A root is reached from the speaker without going round.
  Chain chain_of(Rank host, std::uint16_t half) const {
    const bool has_root = root_ && host == home_;
    return {.first = map_.first(host),
            .size = map_.size(host),
            .leader = has_root ? *root_ : speaker(host, half),
            .upwards = (half == 0) != has_root};
  }
  Rank speaker(Rank host, std::uint16_t half) const { return half == 0 ? map_.first(host) : map_.end(host) - 1; }

  // A host's place in the tree of hosts, in which the root's is 0. Odd places are leaves, and the second tree has the
  // others there: its mirror image where that swaps odd and even, otherwise the same one place further.
  Rank place_of(Rank host, std::uint16_t half) const {
    const Rank hosts = map_.hosts(), place = (host + hosts - home_) % hosts;
    if (half == 0 || place == 0) return place;
    return hosts % 2 == 1 ? hosts - place : place % (hosts - 1) + 1;
  }
  Rank host_at(Rank place, std::uint16_t half) const {
    const Rank hosts = map_.hosts();
    if (half == 1 && place > 0) place = hosts % 2 == 1 ? hosts - place : (place + hosts - 3) % (hosts - 1) + 1;
    return (place + home_) % hosts;
  }

  HostMap map_;
  std::optional<Rank> root_;
  Rank home_;
};

// What trees have in common, up alone: of a block, of which each takes a half.
struct HostTreeSizes {
  explicit HostTreeSizes(const Problem& problem)
      : hosts(static_cast<Rank>(problem.groups[0].size())), smallest(problem.groups[0][0]), largest(smallest) {
    for (const Rank size : problem.groups[0]) {
      smallest = std::min(smallest, size);
      largest = std::max(largest, size);
    }
  }
  double depth() const { return log2_rounded_up(hosts); }                // Between hosts.
  double children() const { return hosts > 3 ? 2 : hosts > 2 ? 1 : 0; }  // Of a host inside a tree, but for the root's.
  double rounded() const { return (largest - 1) / 2.0 + mean_depth(hosts); }
  Rank hosts, smallest, largest;
};

}  // namespace tutti
