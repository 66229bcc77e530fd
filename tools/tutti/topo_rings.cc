#include "tools/tutti/topo_rings.h"

#include <algorithm>
#include <numeric>

#include "src/base/cpu_list.h"
#include "src/communicator/planning/rings.h"
#include "src/topology/describe.h"
#include "src/topology/paths.h"
#include "src/tuner/map_ranks.h"

namespace tutti::tool {
namespace {

// Returns the groups of hosts whose GPUs are connected by NVLinks.
std::vector<std::vector<std::uint32_t>> boxes_of(const Topology& topology) {
  std::vector<std::uint32_t> first(topology.hosts.size());  // First known host of each host's group.
  std::iota(first.begin(), first.end(), 0U);
  for (const Link& link : topology.links) {
    if (link.kind != LinkKind::nvlink) continue;
    const std::uint32_t a = first[topology.nodes[link.a].host], b = first[topology.nodes[link.b].host];
    if (a != b) std::replace(first.begin(), first.end(), std::max(a, b), std::min(a, b));
  }
  std::vector<std::vector<std::uint32_t>> boxes;
  for (std::uint32_t host = 0; host < first.size(); ++host) {
    if (first[host] != host) continue;
    boxes.emplace_back();
    for (std::uint32_t other = host; other < first.size(); ++other)
      if (first[other] == host) boxes.back().push_back(other);
  }
  return boxes;
}

std::string name_of(const Topology& topology, NodeId id, bool with_host) {
  const Node& node = topology.nodes[id];
  return (with_host ? topology.hosts[node.host] + "/" : "") + node.name;
}

std::string words(const Topology& topology, NodeId from, NodeId to) {
  return describe(topology, find_path(topology, from, to), from, to);
}

DrawnRing drawn(const Topology& topology, const NodeRing& node_ring) {
  DrawnRing ring;
  ring.trail = node_ring.nodes;
  if (node_ring.port != kNoNode) ring.trail.push_back(node_ring.port);
  ring.slowest = node_ring.slowest;
  for (std::size_t i = 0; i < ring.trail.size() && ring.trail.size() > 1; ++i)
    ring.hops.push_back(words(topology, ring.trail[i], ring.trail[(i + 1) % ring.trail.size()]));
  return ring;
}

std::string described(const Topology& topology, const NodeRings& node_rings, bool with_host) {
  std::string text;
  for (std::size_t channel = 0; channel < node_rings.each.size(); ++channel) {
    const NodeRing& node_ring = node_rings.each[channel];
    text += "  channel " + std::to_string(channel) + ":";
    if (node_ring.port != kNoNode) text += " " + name_of(topology, node_ring.port, with_host);
    for (const NodeId node : node_ring.nodes) text += " " + name_of(topology, node, with_host);
    const DrawnRing ring = drawn(topology, node_ring);
    if (!ring.hops.empty()) {
      const NodeId from = ring.trail[ring.slowest], to = ring.trail[(ring.slowest + 1) % ring.trail.size()];
      text += ": " + short_number(node_rings.gbytes_per_s) + " GB/s, slowest " + name_of(topology, from, with_host) +
              "-" + name_of(topology, to, with_host) + " " + ring.hops[ring.slowest];
    }
    text += "\n";
  }
  return text;
}

std::string headed(const std::string& what, const NodeRings& node_rings) {
  if (node_rings.each.empty())
    return what + ": none found (no link to some GPU, or too many GPUs and links to search)\n";
  const double sum = node_rings.gbytes_per_s * static_cast<double>(node_rings.each.size());
  return what + ": " + short_number(sum) + " GB/s in total, by " + std::to_string(node_rings.each.size()) +
         (node_rings.each.size() == 1 ? " ring" : " rings") + "\n";
}

std::vector<std::vector<NodeId>> by_host(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::vector<std::vector<NodeId>> hosts(topology.hosts.size());
  for (const NodeId id : nodes) hosts[topology.nodes[id].host].push_back(id);
  return hosts;
}

Status check_gpus(const Topology& topology, const std::vector<std::uint32_t>& gpus) {
  for (const std::uint32_t gpu : gpus) {
    const bool there = std::any_of(topology.nodes.begin(), topology.nodes.end(),
                                   [&](const Node& node) { return node.kind == NodeKind::gpu && node.index == gpu; });
    if (!there) return invalid_argument("--gpus: invalid GPU " + std::to_string(gpu) + "; tutti topo lists the GPUs");
  }
  return {};
}

}  // namespace

Result<TopoRings> rings_of(const Topology& topology, const std::vector<std::uint32_t>& gpus) {
  TUTTI_CHECK_OK(check_gpus(topology, gpus));
  TopoRings rings;
  const auto all_gpus = by_host(topology, topology.all(NodeKind::gpu)),
             all_ports = by_host(topology, usable_ports(topology));
  for (const std::vector<std::uint32_t>& hosts : boxes_of(topology)) {
    std::vector<NodeId> members, ports;
    for (const std::uint32_t host : hosts) {
      members.insert(members.end(), all_gpus[host].begin(), all_gpus[host].end());
      ports.insert(ports.end(), all_ports[host].begin(), all_ports[host].end());
    }
    std::erase_if(members, [&](NodeId id) {
      return !gpus.empty() && std::find(gpus.begin(), gpus.end(), topology.nodes[id].index) == gpus.end();
    });
    std::sort(ports.begin(), ports.end());
    std::sort(members.begin(), members.end(), [&](NodeId a, NodeId b) {
      const Node &one = topology.nodes[a], &other = topology.nodes[b];
      return one.host != other.host ? one.host < other.host : one.index < other.index;
    });
    if (members.empty()) continue;
    const bool several = hosts.size() > 1;
    const std::string where = topology.hosts[hosts.front()] + (several ? " ... " + topology.hosts[hosts.back()] : "");
    const NodeRings inside = find_node_rings(topology, members, {}, kMaxRingOrders);
    rings.text += headed("rings inside " + where, inside) + described(topology, inside, several);
    for (const NodeRing& node_ring : inside.each) rings.drawn.push_back(drawn(topology, node_ring));
    if (ports.empty()) continue;
    const NodeRings outside = find_node_rings(topology, members, ports, kMaxRingOrders);
    rings.text += headed("rings from " + where + " to other hosts", outside) + described(topology, outside, several);
    if (!outside.each.empty() && members.size() > 1)
      rings.text +=
          "  data arrives at the port nearest to the first GPU; in trees of hosts, the first and the last GPU "
          "communicate with other hosts\n";
  }
  if (rings.text.empty()) rings.text = "rings: no GPUs\n";
  return rings;
}

Result<std::vector<std::uint32_t>> parse_gpus(const std::string& text) {
  Result<std::vector<std::uint32_t>> gpus = cpus_of_list(text);
  if (!gpus.ok() || gpus.value().empty())
    return invalid_argument("must be a list of different GPU indices, such as 0,1,5-7");
  return gpus;
}

}  // namespace tutti::tool
