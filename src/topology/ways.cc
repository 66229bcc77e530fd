#include "src/topology/ways.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace tutti {
namespace {

constexpr double kNoEnd = std::numeric_limits<double>::infinity();

// Ways over NVLinks that are added up. A GPU has 18 links today, and each way leaves by one or more.
constexpr int kMostFlows = 128;

using LinkFilter = std::function<bool(const Link&)>;

class Graph {
 public:
  Graph(const Topology& topology, NodeId from, NodeId to)
      : topology_(topology),
        from_(from),
        to_(to),
        links_of_(topology.nodes.size()),
        steps_(topology.nodes.size() + topology.links.size()) {
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      links_of_[topology.links[i].a].push_back(i);
      links_of_[topology.links[i].b].push_back(i);
    }
  }

  // The nodes from end to end, of least latency over links that the filter lets through. Empty: there is no way.
  std::vector<NodeId> nearest(const LinkFilter& takes) {
    std::vector<double> latency(topology_.nodes.size(), kNoEnd);
    std::vector<NodeId> before(topology_.nodes.size());
    std::priority_queue<std::pair<double, NodeId>, std::vector<std::pair<double, NodeId>>, std::greater<>> next;
    latency[from_] = 0;
    next.emplace(0, from_);
    while (!next.empty()) {
      const auto [so_far, at] = next.top();
      next.pop();
      if (so_far > latency[at] || !passes_on(at)) continue;
      for (const std::size_t i : links_of_[at]) {
        const Link& link = topology_.links[i];
        const NodeId other = link.a == at ? link.b : link.a;
        ++steps_;
        if (!takes(link) || so_far + link.latency_us >= latency[other]) continue;
        latency[other] = so_far + link.latency_us;
        before[other] = at;
        next.emplace(latency[other], other);
      }
    }
    std::vector<NodeId> nodes;
    if (latency[to_] == kNoEnd) return nodes;
    for (NodeId at = to_; at != from_; at = before[at]) nodes.push_back(at);
    nodes.push_back(from_);
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  // What the narrowest link of the widest way has, by Dijkstra's search with widths instead of sums. 0: there is no
  // way.
  double widest(const LinkFilter& takes) {
    std::vector<double> width(topology_.nodes.size(), 0);
    std::priority_queue<std::pair<double, NodeId>> next;
    width[from_] = kNoEnd;
    next.emplace(kNoEnd, from_);
    while (!next.empty()) {
      const auto [so_far, at] = next.top();
      next.pop();
      if (at == to_) break;
      if (so_far < width[at] || !passes_on(at)) continue;
      for (const std::size_t i : links_of_[at]) {
        const Link& link = topology_.links[i];
        const NodeId other = link.a == at ? link.b : link.a;
        const double wide = std::min(so_far, link.gbytes_per_s);
        ++steps_;
        if (!takes(link) || wide <= width[other]) continue;
        width[other] = wide;
        next.emplace(wide, other);
      }
    }
    return width[to_];
  }

  // All that NVLinks carry at once, by the shortest ways first (Edmonds and Karp 1972), and what each does of it.
  double nvlink_flow(std::vector<LinkLoad>& loads) {
    std::vector<std::array<double, 2>> left(topology_.links.size());  // From a to b, and from b to a.
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool nvlink = topology_.links[i].kind == LinkKind::nvlink;
      left[i].fill(nvlink ? topology_.links[i].gbytes_per_s : 0);
    }
    double flow = 0;
    for (int i = 0; i < kMostFlows; ++i) {
      const double more = augment(left);
      if (more == 0) break;
      flow += more;
    }
    for (std::uint32_t i = 0; i < left.size(); ++i) {
      const double forth = (left[i][1] - left[i][0]) / 2;
      if (forth != 0) loads.push_back({i, forth > 0, std::abs(forth) / flow});
    }
    return flow;
  }

  std::vector<LinkLoad> loads(const std::vector<NodeId>& nodes, const LinkFilter& takes) const {
    std::vector<LinkLoad> each;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
      const Link* link = best(nodes[i], nodes[i + 1], takes);
      each.push_back({static_cast<std::uint32_t>(link - topology_.links.data()), link->a == nodes[i]});
    }
    return each;
  }

  double latency(const std::vector<NodeId>& nodes, const LinkFilter& takes) const {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) sum += best(nodes[i], nodes[i + 1], takes)->latency_us;
    return sum;
  }

  bool crosses(const std::vector<NodeId>& nodes, const LinkFilter& takes, LinkKind kind) const {
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
      if (best(nodes[i], nodes[i + 1], takes)->kind == kind) return true;
    return false;
  }

  std::uint64_t steps() const { return steps_; }

 private:
  bool passes_on(NodeId id) const {
    const NodeKind kind = topology_.nodes[id].kind;
    return id == from_ || kind == NodeKind::numa || kind == NodeKind::pci_switch || kind == NodeKind::nvswitch ||
           kind == NodeKind::network;
  }

  const Link* best(NodeId a, NodeId b, const LinkFilter& takes) const {
    const Link* found = nullptr;
    for (const std::size_t i : links_of_[a]) {
      const Link& link = topology_.links[i];
      if ((link.a == b || link.b == b) && takes(link) && (found == nullptr || link.latency_us < found->latency_us))
        found = &link;
    }
    return found;
  }

  double augment(std::vector<std::array<double, 2>>& left) {
    std::vector<std::size_t> by(topology_.nodes.size(), topology_.links.size());
    std::deque<NodeId> next{from_};
    while (!next.empty() && by[to_] == topology_.links.size()) {
      const NodeId at = next.front();
      next.pop_front();
      if (!passes_on(at)) continue;
      for (const std::size_t i : links_of_[at]) {
        const Link& link = topology_.links[i];
        const NodeId other = link.a == at ? link.b : link.a;
        ++steps_;
        if (other == from_ || by[other] != topology_.links.size() || left[i][link.a == at ? 0 : 1] <= 0) continue;
        by[other] = i;
        next.push_back(other);
      }
    }
    if (by[to_] == topology_.links.size()) return 0;
    const auto before = [&](NodeId at) {
      return topology_.links[by[at]].a == at ? topology_.links[by[at]].b : topology_.links[by[at]].a;
    };
    double most = kNoEnd;
    for (NodeId at = to_; at != from_; at = before(at))
      most = std::min(most, left[by[at]][topology_.links[by[at]].b == at ? 0 : 1]);
    for (NodeId at = to_; at != from_; at = before(at)) {
      const std::size_t forth = topology_.links[by[at]].b == at ? 0 : 1;
      left[by[at]][forth] -= most;
      left[by[at]][1 - forth] += most;
    }
    return most;
  }

  const Topology& topology_;
  NodeId from_, to_;
  std::vector<std::vector<std::size_t>> links_of_;  // [node]
  std::uint64_t steps_;
};

WayKind kind_of(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::size_t switches = 0, processors = 0, networks = 0;
  for (const NodeId id : nodes) {
    switches += topology.nodes[id].kind == NodeKind::pci_switch;
    processors += topology.nodes[id].kind == NodeKind::numa;
    networks += topology.nodes[id].kind == NodeKind::network;
  }
  if (networks > 0) return WayKind::network;
  if (processors > 1) return WayKind::sys;
  if (processors > 0) return WayKind::phb;
  return switches > 1 ? WayKind::pxb : WayKind::pix;
}

}  // namespace

const char* name(WayKind kind) {
  constexpr const char* kNames[] = {"-", "X", "NV", "C2C", "PIX", "PXB", "PHB", "SYS", "NET"};
  return kNames[static_cast<std::size_t>(kind)];
}

Way way(const Topology& topology, NodeId from, NodeId to) {
  Way found;
  found.nodes = {from};
  found.gbytes_per_s = kNoEnd;
  found.kind = WayKind::same;
  if (from == to) return found;
  Graph graph(topology, from, to);
  LinkFilter takes = [](const Link& link) { return link.kind == LinkKind::nvlink; };
  found.nodes = graph.nearest(takes);
  if (!found.nodes.empty()) {
    found.kind = WayKind::nvlink;
    found.gbytes_per_s = graph.nvlink_flow(found.loads);
    found.latency_us = graph.latency(found.nodes, takes);
    found.steps = graph.steps();
    return found;
  }
  const double wide = graph.widest([](const Link& link) { return link.kind != LinkKind::nvlink; });
  takes = [wide](const Link& link) { return link.kind != LinkKind::nvlink && link.gbytes_per_s >= wide; };
  if (wide > 0) found.nodes = graph.nearest(takes);
  found.steps = graph.steps();
  found.gbytes_per_s = wide;
  if (found.nodes.empty()) {
    found.kind = WayKind::none;
    return found;
  }
  found.kind = kind_of(topology, found.nodes);
  found.latency_us = graph.latency(found.nodes, takes);
  found.loads = graph.loads(found.nodes, takes);
  if (found.kind == WayKind::phb && graph.crosses(found.nodes, takes, LinkKind::c2c)) found.kind = WayKind::c2c;
  return found;
}

}  // namespace tutti
