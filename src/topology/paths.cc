#include "src/topology/paths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace tutti {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

// Maximum number of augmenting NVLink paths. GPUs have up to 18 links today, and each path uses at least one.
constexpr int kMaxFlows = 128;

using LinkFilter = std::function<bool(const Link&)>;

// Shortest-path, widest-path and maximum-flow searches from one node.
class Graph {
 public:
  Graph(const Topology& topology, NodeId from)
      : topology_(topology),
        from_(from),
        first_(topology.nodes.size() + 1),
        inner_end_(topology.nodes.size()),
        links_(2 * topology.links.size()),
        ends_(topology.nodes.size()),
        left_(topology.links.size()),
        by_(topology.nodes.size(), topology.links.size()),
        steps_(topology.nodes.size() + topology.links.size()) {
    sort_links();
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      const Link& link = topology.links[i];
      left_[i].fill(link.kind == LinkKind::nvlink ? link.gbytes_per_s : 0);
    }
  }

  // Least latency from the source to a node.
  struct Reached {
    double latency = kNoEnd;
    std::size_t by = 0;  // Last link of the path.
  };
  using Tree = std::vector<Reached>;  // [node]

  // Dijkstra's algorithm by latency, over the links that `takes` accepts.
  Tree nearest(const LinkFilter& takes) {
    Tree tree(topology_.nodes.size());
    std::priority_queue<std::pair<double, NodeId>, std::vector<std::pair<double, NodeId>>, std::greater<>> next;
    tree[from_].latency = 0;
    next.emplace(0, from_);
    while (!next.empty()) {
      const auto [so_far, at] = next.top();
      next.pop();
      if (so_far > tree[at].latency || !passes_on(at)) continue;
      for (const std::size_t i : links_of(at)) {
        const Link& link = topology_.links[i];
        const NodeId other = other_end(i, at);
        ++steps_;
        if (!takes(link) || so_far + link.latency_us >= tree[other].latency) continue;
        tree[other] = {so_far + link.latency_us, i};
        next.emplace(tree[other].latency, other);
      }
    }
    return tree;
  }

  // Bandwidth of the widest path to each node: Dijkstra's algorithm with the minimum in place of the sum. 0:
  // unreachable.
  std::vector<double> widest(const LinkFilter& takes) {
    std::vector<double> width(topology_.nodes.size(), 0);
    std::priority_queue<std::pair<double, NodeId>> next;
    width[from_] = kNoEnd;
    next.emplace(kNoEnd, from_);
    while (!next.empty()) {
      const auto [so_far, at] = next.top();
      next.pop();
      if (so_far < width[at] || !passes_on(at)) continue;
      for (const std::size_t i : links_of(at)) {
        const Link& link = topology_.links[i];
        const NodeId other = other_end(i, at);
        const double wide = std::min(so_far, link.gbytes_per_s);
        ++steps_;
        if (!takes(link) || wide <= width[other]) continue;
        width[other] = wide;
        next.emplace(wide, other);
      }
    }
    return width;
  }

  // Maximum NVLink flow to a node by shortest augmenting paths (Edmonds and Karp 1972). Appends the share of each link
  // to `loads`. Returns GB/s.
  double nvlink_flow(NodeId to, std::vector<LinkLoad>& loads) {
    std::vector<NodeId> before_it;  // Non-forwarding nodes other than `to` are not visited.
    if (!passes_on(to)) {
      for (const std::size_t i : links_of(to)) {
        before_it.push_back(other_end(i, to));
        ends_[before_it.back()].push_back(i);
      }
    }
    std::vector<std::size_t> used;
    double flow = 0;
    for (int i = 0; i < kMaxFlows; ++i) {
      const double more = augment(to, used);
      if (more == 0) break;
      flow += more;
    }
    for (const NodeId node : before_it) ends_[node].pop_back();
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (const std::size_t i : used) {
      const double forth = (left_[i][1] - left_[i][0]) / 2;
      if (forth != 0) loads.push_back({static_cast<std::uint32_t>(i), forth > 0, std::abs(forth) / flow});
      left_[i].fill(topology_.links[i].gbytes_per_s);
    }
    return flow;
  }

  // Links of the path in order; empty if `to` is unreachable.
  std::vector<std::size_t> links_to(NodeId to, const Tree& tree) const {
    std::vector<std::size_t> links;
    if (tree[to].latency == kNoEnd) return links;
    for (NodeId at = to; at != from_; at = other_end(links.back(), at)) links.push_back(tree[at].by);
    std::reverse(links.begin(), links.end());
    return links;
  }

  std::vector<NodeId> nodes_of(const std::vector<std::size_t>& links) const {
    std::vector<NodeId> nodes = {from_};
    for (const std::size_t i : links) nodes.push_back(other_end(i, nodes.back()));
    return nodes;
  }

  std::uint64_t steps() const { return steps_; }

 private:
  bool passes_on(NodeId id) const {
    const NodeKind kind = topology_.nodes[id].kind;
    return id == from_ || kind == NodeKind::numa || kind == NodeKind::pci_switch || kind == NodeKind::nvswitch ||
           kind == NodeKind::network;
  }

  void sort_links() {
    const auto each_end = [&](const auto& visit) {
      for (std::size_t i = 0; i < topology_.links.size(); ++i) {
        visit(topology_.links[i].a, topology_.links[i].b, i);
        visit(topology_.links[i].b, topology_.links[i].a, i);
      }
    };
    // Counts first, then insert positions.
    std::vector<std::size_t> inner(topology_.nodes.size()), outer(topology_.nodes.size());
    each_end([&](NodeId at, NodeId other, std::size_t) { ++(passes_on(other) ? inner : outer)[at]; });
    for (NodeId node = 0; node < topology_.nodes.size(); ++node) {
      inner_end_[node] = first_[node] + inner[node];
      first_[node + 1] = inner_end_[node] + outer[node];
      inner[node] = first_[node];
      outer[node] = inner_end_[node];
    }
    each_end([&](NodeId at, NodeId other, std::size_t i) { links_[(passes_on(other) ? inner : outer)[at]++] = i; });
  }

  std::span<const std::size_t> links_of(NodeId at) const {
    return std::span(links_).subspan(first_[at], first_[at + 1] - first_[at]);
  }

  NodeId other_end(std::size_t link, NodeId node) const {
    return topology_.links[link].a == node ? topology_.links[link].b : topology_.links[link].a;
  }

  // Finds one augmenting path and returns its flow; 0 if there is none. Appends its links to `used`.
  double augment(NodeId to, std::vector<std::size_t>& used) {
    const std::size_t no_link = topology_.links.size();
    std::vector<NodeId> seen = {from_};  // Breadth-first queue.
    for (std::size_t next = 0; next < seen.size() && by_[to] == no_link; ++next) {
      const NodeId at = seen[next];
      if (!passes_on(at)) continue;
      const auto go = [&](std::size_t i) {
        const NodeId other = other_end(i, at);
        ++steps_;
        if (other == from_ || by_[other] != no_link || left_[i][direction(i, at)] <= 0) return;
        by_[other] = i;
        seen.push_back(other);
      };
      for (std::size_t i = first_[at]; i < inner_end_[at]; ++i) go(links_[i]);
      for (const std::size_t i : ends_[at]) go(i);
    }
    double flow = by_[to] == no_link ? 0 : kNoEnd;
    std::vector<std::pair<std::size_t, std::size_t>> path;  // Link and direction.
    for (NodeId at = to; by_[to] != no_link && at != from_; at = other_end(by_[at], at)) {
      path.emplace_back(by_[at], 1 - direction(by_[at], at));
      flow = std::min(flow, left_[by_[at]][path.back().second]);
    }
    for (const auto& [link, forth] : path) {
      left_[link][forth] -= flow;
      left_[link][1 - forth] += flow;
      used.push_back(link);
    }
    for (const NodeId node : seen) by_[node] = no_link;
    return flow;
  }

  std::size_t direction(std::size_t link, NodeId from) const { return topology_.links[link].a == from ? 0 : 1; }

  const Topology& topology_;
  NodeId from_;
  // [node]: begin of its links in links_, and begin of those to non-forwarding nodes.
  std::vector<std::size_t> first_, inner_end_;
  std::vector<std::size_t> links_;
  std::vector<std::vector<std::size_t>>
      ends_;                                 // [node]: links to the non-forwarding destination of the current search.
  std::vector<std::array<double, 2>> left_;  // Residual NVLink capacity: from a to b, and from b to a.
  std::vector<std::size_t> by_;              // [node]: link by which the current search reached it.
  std::uint64_t steps_;
};

PathKind kind_of(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::size_t switches = 0, processors = 0, networks = 0;
  for (const NodeId id : nodes) {
    switches += topology.nodes[id].kind == NodeKind::pci_switch;
    processors += topology.nodes[id].kind == NodeKind::numa;
    networks += topology.nodes[id].kind == NodeKind::network;
  }
  if (networks > 0) return PathKind::network;
  if (processors > 1) return PathKind::sys;
  if (processors > 0) return PathKind::phb;
  return switches > 1 ? PathKind::pxb : PathKind::pix;
}

// Fills in kind and loads of a path without NVLinks.
void fill_in(const Topology& topology, const std::vector<std::size_t>& links, NodePath& path) {
  bool over_c2c = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = topology.links[links[i]];
    over_c2c |= link.kind == LinkKind::c2c;
    path.loads.push_back({static_cast<std::uint32_t>(links[i]), link.a == path.nodes[i]});
  }
  path.kind = kind_of(topology, path.nodes);
  if (path.kind == PathKind::phb && over_c2c) path.kind = PathKind::c2c;
}

}  // namespace

const char* name(PathKind kind) {
  constexpr const char* kNames[] = {"-", "X", "NV", "C2C", "PIX", "PXB", "PHB", "SYS", "NET"};
  return kNames[static_cast<std::size_t>(kind)];
}

NodePath find_path(const Topology& topology, NodeId from, NodeId to) {
  return std::move(find_paths(topology, from, std::span(&to, 1)).front());
}

std::vector<NodePath> find_paths(const Topology& topology, NodeId from, std::span<const NodeId> to) {
  Graph graph(topology, from);
  const Graph::Tree by_nvlinks = graph.nearest([](const Link& link) { return link.kind == LinkKind::nvlink; });
  std::vector<NodePath> found(to.size());
  std::vector<std::size_t> others;  // Destinations without an NVLink path.
  for (std::size_t i = 0; i < to.size(); ++i) {
    NodePath& path = found[i];
    if (to[i] == from) {
      path.nodes = {from};
      path.gbytes_per_s = kNoEnd;
      path.kind = PathKind::same;
      continue;
    }
    const std::vector<std::size_t> links = graph.links_to(to[i], by_nvlinks);
    if (links.empty()) {
      others.push_back(i);
      continue;
    }
    path.kind = PathKind::nvlink;
    path.nodes = graph.nodes_of(links);
    path.gbytes_per_s = graph.nvlink_flow(to[i], path.loads);
    path.latency_us = by_nvlinks[to[i]].latency;
    path.steps = graph.steps();
  }
  if (others.empty()) return found;
  const std::vector<double> widths = graph.widest([](const Link& link) { return link.kind != LinkKind::nvlink; });
  std::stable_sort(others.begin(), others.end(),
                   [&](std::size_t a, std::size_t b) { return widths[to[a]] < widths[to[b]]; });
  double wide = 0;
  Graph::Tree tree;  // Over links of at least this width.
  for (const std::size_t i : others) {
    if (widths[to[i]] > wide) {
      wide = widths[to[i]];
      tree =
          graph.nearest([&](const Link& link) { return link.kind != LinkKind::nvlink && link.gbytes_per_s >= wide; });
    }
    found[i].steps = graph.steps();
    if (wide == 0) continue;
    const std::vector<std::size_t> links = graph.links_to(to[i], tree);
    found[i].gbytes_per_s = wide;
    found[i].latency_us = tree[to[i]].latency;
    found[i].nodes = graph.nodes_of(links);
    fill_in(topology, links, found[i]);
  }
  return found;
}

}  // namespace tutti
