#include "src/tuner/map_ranks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "src/topology/paths.h"

namespace tutti {
namespace {

// The topology as a ring search: each link twice, once per direction, and each port's link to the network.
class RingSearch {
 public:
  RingSearch(const Topology& topology, std::span<const NodeId> nodes, std::span<const NodeId> ports,
             std::uint32_t max_rings)
      : topology_(topology), nodes_(nodes), ports_(ports) {
    requested_.max_rings = max_rings;
    requested_.vertices = static_cast<std::uint32_t>(nodes.size());
    requested_.gates = static_cast<std::uint32_t>(ports.size());
    for (const Link& link : topology.links) requested_.rates.insert(requested_.rates.end(), 2, link.gbytes_per_s);
    requested_.uses.resize(std::size_t{requested_.size()} * requested_.size());
    requested_.latencies_us.resize(requested_.uses.size());
    for (std::uint32_t from = 0; from < requested_.vertices; ++from)
      for (std::uint32_t to = from + 1; to < requested_.vertices && !too_long(); ++to) connect(from, to);
    for (const NodeId port : ports_)
      requested_.rates.insert(requested_.rates.end(), 2, topology_.nodes[port].gbytes_per_s);
    for (std::uint32_t vertex = 0; vertex < requested_.vertices && !too_long(); ++vertex) pass_gates(vertex);
  }
  const RingSearchProblem& requested() const { return requested_; }
  std::uint64_t steps() const { return steps_; }
  bool too_long() const { return steps_ > kMaxSteps; }
  // The search restricted to NVLinks between GPUs; nothing if this makes no difference or has no solution.
  std::optional<RingSearchProblem> over_nvlinks() const {
    if (by_other_routes_.empty() ||
        by_other_routes_.size() == std::size_t{requested_.vertices} * (requested_.vertices - 1))
      return std::nullopt;
    RingSearchProblem requested = requested_;
    for (const std::size_t use : by_other_routes_) requested.uses[use].clear();
    return requested;
  }

  // Index of the hop with the least bandwidth of its own.
  std::size_t slowest(const Ring& ring) const {
    std::vector<std::uint32_t> trail = ring.vertices;
    if (requested_.gates > 0) trail.push_back(requested_.vertices + ring.gate);
    std::size_t found = 0;
    double min = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < trail.size() && trail.size() > 1; ++i) {
      for (const Use& use : requested_.use(trail[i], trail[(i + 1) % trail.size()])) {
        if (requested_.rates[use.link] / use.part >= min * (1 - 1e-9)) continue;
        min = requested_.rates[use.link] / use.part;
        found = i;
      }
    }
    return found;
  }

 private:
  // Adds both directions, since links are full-duplex.
  void connect(std::uint32_t from, std::uint32_t to) {
    const NodePath found = find_path(topology_, nodes_[from], nodes_[to]);
    steps_ += found.steps;
    const std::size_t there = std::size_t{from} * requested_.size() + to,
                      back = std::size_t{to} * requested_.size() + from;
    requested_.latencies_us[there] = requested_.latencies_us[back] = found.latency_us;
    if (found.kind != PathKind::nvlink) by_other_routes_.insert(by_other_routes_.end(), {there, back});
    for (const LinkLoad& load : found.loads) {
      requested_.uses[there].push_back({2 * load.link + (load.forth ? 0 : 1), load.part});
      requested_.uses[back].push_back({2 * load.link + (load.forth ? 1 : 0), load.part});
    }
  }

  // A ring leaves a host through the port nearest to its last vertex, and enters through the port nearest to its first
  // vertex. A ring therefore passes through the gate of its last vertex; the first one is near this gate if possible.
  void pass_gates(std::uint32_t vertex) {
    const auto own = std::find(ports_.begin(), ports_.end(), nearest_port(topology_, nodes_[vertex], ports_));
    if (own == ports_.end()) return;
    const auto own_gate = static_cast<std::uint32_t>(own - ports_.begin());
    const NodePath out = find_path(topology_, nodes_[vertex], *own);
    std::vector<Use> leaves, enters;
    for (const LinkLoad& load : out.loads) {
      leaves.push_back({2 * load.link + (load.forth ? 0 : 1), load.part});
      enters.push_back({2 * load.link + (load.forth ? 1 : 0), load.part});
    }
    if (topology_.nodes[*own].gbytes_per_s > 0) {  // Otherwise unknown, and the link to the port decides.
      const auto rate = static_cast<std::uint32_t>(2 * (topology_.links.size() + own_gate));
      leaves.push_back({rate, 1});
      enters.push_back({rate + 1, 1});
    }
    for (std::uint32_t gate = 0; gate < requested_.gates; ++gate) {
      const std::uint32_t number = requested_.vertices + gate;
      const NodePath found = find_path(topology_, nodes_[vertex], ports_[gate]);
      steps_ += found.steps;
      if (found.kind == PathKind::none) continue;
      const std::size_t there = std::size_t{vertex} * requested_.size() + number;
      const std::size_t back = std::size_t{number} * requested_.size() + vertex;
      requested_.latencies_us[there] = requested_.latencies_us[back] = found.latency_us;
      requested_.uses[back] = enters;
      if (gate == own_gate) requested_.uses[there] = leaves;
    }
  }

  const Topology& topology_;
  const std::span<const NodeId> nodes_, ports_;
  RingSearchProblem requested_;
  std::uint64_t steps_ = 0;
  std::vector<std::size_t> by_other_routes_;  // Indices of uses that are not NVLinks.
};

// Prefers rings over NVLinks only. Bandwidth gained from PCI would be taken from other traffic.
RingSet find_rings(const RingSearch& question, NodeRings& node_rings) {
  RingSet found;
  if (const std::optional<RingSearchProblem> requested = question.over_nvlinks()) found = find_rings(*requested);
  node_rings.only_rings = !found.rings.empty();
  node_rings.visits = found.visits;
  if (node_rings.only_rings) return found;
  found = find_rings(question.requested());
  node_rings.visits += found.visits;
  return found;
}

}  // namespace

NodeId gpu_on(const Topology& topology, std::string_view bus_id) {
  for (NodeId id = 0; id < topology.nodes.size(); ++id)
    if (topology.nodes[id].kind == NodeKind::gpu && topology.nodes[id].bus_id == bus_id) return id;
  return kNoNode;
}

NodeRings find_node_rings(const Topology& topology, std::span<const NodeId> nodes, std::span<const NodeId> ports,
                          std::uint32_t max_rings) {
  NodeRings node_rings;
  if (nodes.size() > kMaxVertices) return node_rings;
  const RingSearch question(topology, nodes, ports, max_rings);
  node_rings.steps = question.steps();
  if (question.too_long()) return node_rings;
  const RingSet found = find_rings(question, node_rings);
  node_rings.gbytes_per_s = found.gbytes_per_s;
  for (const Ring& ring : found.rings) {
    NodeRing node_ring;
    for (const std::uint32_t vertex : ring.vertices) node_ring.nodes.push_back(nodes[vertex]);
    if (!ports.empty()) node_ring.port = ports[ring.gate];
    node_ring.slowest = question.slowest(ring);
    node_rings.each.push_back(std::move(node_ring));
  }
  return node_rings;
}

std::vector<NodeId> usable_ports(const Topology& topology) {
  std::vector<NodeId> ports = topology.all(NodeKind::nic);
  std::erase_if(ports, [&](NodeId id) { return topology.nodes[id].down; });
  const auto direct = [&](NodeId id) { return topology.nodes[id].gpudirect; };
  if (std::any_of(ports.begin(), ports.end(), direct)) std::erase_if(ports, [&](NodeId id) { return !direct(id); });
  if (ports.size() > kMaxRings) ports.resize(kMaxRings);
  return ports;
}

NodeId nearest_port(const Topology& topology, NodeId device, std::span<const NodeId> ports) {
  std::vector<NodeId> nearest;
  std::optional<NodePath> best;
  for (const NodeId port : ports) {
    const NodePath found = find_path(topology, device, port);
    if (found.kind == PathKind::none) continue;
    const bool better = !best || found.kind < best->kind ||
                        (found.kind == best->kind && found.latency_us < best->latency_us * (1 - 1e-9));
    const bool same = best && found.kind == best->kind && !better && found.latency_us <= best->latency_us * (1 + 1e-9);
    if (better) nearest.clear();
    if (better || same) nearest.push_back(port);
    if (better) best = found;
  }
  return nearest.empty() ? kNoNode : nearest[topology.nodes[device].index % nearest.size()];
}

namespace {

// Ranks of one host, by node.
using Residents = std::map<NodeId, std::vector<Rank>>;

std::vector<Rank> ranks_on(const NodeRing& node_ring, const Residents& residents) {
  std::vector<Rank> ranks;
  for (const NodeId node : node_ring.nodes) {
    const std::vector<Rank>& here = residents.at(node);
    ranks.insert(ranks.end(), here.begin(), here.end());
  }
  return ranks;
}

// Adds all orders with the ranks of each host reversed, so that both ends of a host have equal traffic. In a tree of
// hosts, one end has more traffic than the other.
void add_reversed(std::span<const RankNode> rank_nodes, RankRings& rings) {
  const std::size_t count = rings.orders.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Rank> order = rings.orders[i];
    for (auto first = order.begin(); first != order.end();) {
      const std::uint32_t host = rank_nodes[*first].host;
      const auto end = std::find_if(first, order.end(), [&](Rank rank) { return rank_nodes[rank].host != host; });
      std::reverse(first, end);
      first = end;
    }
    rings.orders.push_back(std::move(order));
  }
  rings.gbytes_per_s /= 2;
}

}  // namespace

RankRings find_rank_rings(const MergedTopology& merged, std::span<const RankNode> rank_nodes, std::uint32_t max_rings) {
  std::vector<std::uint32_t> hosts;  // In the order of their first ranks.
  std::map<std::uint32_t, Residents> residents;
  for (Rank rank = 0; rank < rank_nodes.size(); ++rank) {
    const RankNode& rank_node = rank_nodes[rank];
    if (rank_node.host >= merged.hosts() || rank_node.node >= merged.of(rank_node.host).nodes.size()) return {};
    if (!residents.contains(rank_node.host)) hosts.push_back(rank_node.host);
    residents[rank_node.host][rank_node.node].push_back(rank);
  }
  // Hosts of the same kind with ranks on the same nodes share one search.
  std::map<std::pair<std::uint32_t, std::vector<NodeId>>, NodeRings> known;
  std::vector<const NodeRings*> of_host;
  RankRings rings;
  rings.gbytes_per_s = std::numeric_limits<double>::infinity();
  std::size_t channels = 0;
  for (const std::uint32_t host : hosts) {
    std::vector<NodeId> nodes;
    for (const auto& [node, ranks] : residents[host]) nodes.push_back(node);
    const Topology& topology = merged.of(host);
    const auto [found, is_new] = known.try_emplace({merged.kind_of[host], nodes});
    if (is_new) {
      const std::vector<NodeId> ports = hosts.size() > 1 ? usable_ports(topology) : std::vector<NodeId>();
      found->second = find_node_rings(topology, nodes, ports, max_rings);
      if (found->second.each.empty() && !ports.empty()) found->second = find_node_rings(topology, nodes, {}, max_rings);
    }
    if (found->second.each.empty()) return {};
    of_host.push_back(&found->second);
    rings.only_rings = rings.only_rings || found->second.only_rings;
    channels = std::max(channels, found->second.each.size());
  }
  for (std::size_t channel = 0; channel < channels; ++channel) {
    std::vector<Rank> order;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const NodeRing& node_ring = of_host[i]->each[channel % of_host[i]->each.size()];
      const std::vector<Rank> ranks = ranks_on(node_ring, residents[hosts[i]]);
      order.insert(order.end(), ranks.begin(), ranks.end());
    }
    rings.orders.push_back(std::move(order));
  }
  // A host with fewer rings than other hosts uses some of them repeatedly.
  for (const NodeRings* node_rings : of_host) {
    const std::size_t times = (channels + node_rings->each.size() - 1) / node_rings->each.size();
    if (node_rings->gbytes_per_s > 0)
      rings.gbytes_per_s = std::min(rings.gbytes_per_s, node_rings->gbytes_per_s / static_cast<double>(times));
  }
  if (rings.gbytes_per_s == std::numeric_limits<double>::infinity()) rings.gbytes_per_s = 0;
  if (hosts.size() > 1 && 2 * channels <= max_rings) add_reversed(rank_nodes, rings);
  return rings;
}

}  // namespace tutti
