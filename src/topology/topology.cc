#include "src/topology/topology.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/cpu_list.h"
#include "src/topology/plain_text.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

constexpr std::string_view kNodeKinds[] = {"numa", "cpu", "pci_switch", "gpu", "nvswitch", "nic", "network"};
constexpr std::string_view kLinkKinds[] = {"memory", "smp", "pci", "nvlink", "c2c", "network"};

template <typename Kind, std::size_t count>
Result<Kind> parse(std::string_view text, const std::string_view (&names)[count], const char* what) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == text) return static_cast<Kind>(i);
    all += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + std::string(names[i]);
  }
  return invalid_argument("'" + std::string(text) + "' is not a kind of " + what + "; valid: " + all);
}

std::string shown(const Topology& topology, const Node& node) {
  return "'" + node.name + "' of host '" + topology.hosts[node.host] + "'";
}

// Sanity bounds in GB/s and us, beyond all real hardware. Sums of times stay finite within these bounds.
constexpr double kMinRate = 1e-6, kMaxRate = 1e9, kMaxLatency = 1e9;

bool is_rate(double value) { return value >= kMinRate && value <= kMaxRate; }

// Checks the port bandwidth.
Status check_rate(const Topology& topology, const Node& node) {
  if (node.gbytes_per_s == 0 || is_rate(node.gbytes_per_s)) return {};
  return invalid_argument(shown(topology, node) + " has a bandwidth out of range; valid: 0 (unknown), or " +
                          "1e-6 to 1e9 GB/s");
}

Status check_link(const Topology& topology, const Link& link) {
  const std::size_t nodes = topology.nodes.size();
  if (link.a >= nodes || link.b >= nodes)
    return invalid_argument("a link leads to node " + std::to_string(std::max(link.a, link.b)) + " of " +
                            std::to_string(nodes));
  const Node& a = topology.nodes[link.a];
  const Node& b = topology.nodes[link.b];
  if (link.a == link.b) return invalid_argument("a link leads from " + shown(topology, a) + " to itself");
  const std::string where = "the link from " + shown(topology, a) + " to " + shown(topology, b);
  if (!is_rate(link.gbytes_per_s))
    return invalid_argument(where + " has a bandwidth out of range; valid: 1e-6 to 1e9 GB/s");
  if (!(link.latency_us >= 0 && link.latency_us <= kMaxLatency))
    return invalid_argument(where + " has a latency out of range; valid: 0 to 1e9 us");
  if (link.width == 0) return invalid_argument(where + " has no lanes");
  const bool leaves = a.kind == NodeKind::network || b.kind == NodeKind::network;
  if (a.host != b.host && !leaves && link.kind != LinkKind::nvlink)
    return invalid_argument(where + " connects two hosts, but is neither a network link nor an NVLink");
  return {};
}

// Rejects control characters, because texts from files are printed on terminals and written to other formats.
Status check_text(const std::string& text, const std::string& what) {
  const std::size_t end = plain_until(text);
  if (end == text.size()) return {};
  const bool control = static_cast<unsigned char>(text[end]) < 0x20 || text[end] == 0x7f;
  return invalid_argument(what + (control ? " has control characters" : " is not valid UTF-8 text") + ", from byte " +
                          std::to_string(end) + " on");
}

Status check_texts(const Topology& topology) {
  for (const std::string& host : topology.hosts) TUTTI_CHECK_OK(check_text(host, "a host's name"));
  for (const std::string& note : topology.notes) TUTTI_CHECK_OK(check_text(note, "a note"));
  for (const Node& node : topology.nodes) {
    for (const std::string* text : {&node.name, &node.bus_id, &node.model, &node.cpus})
      TUTTI_CHECK_OK(check_text(*text, "a node's name, bus id, model or list of processors"));
    if (!node.bus_id.empty() && !is_bus_id(node.bus_id))
      return invalid_argument("the bus id of node '" + node.name + "', '" + node.bus_id.substr(0, 64) +
                              "', is not a bus id such as 0000:a4:00.0");
  }
  for (const Node& node : topology.nodes) TUTTI_TRY(cpus_of_list(node.cpus));
  return {};
}

// Checks that no node is its own ancestor, has two parents, or is too deep.
Status check_trees(const Topology& topology) {
  constexpr NodeId kNone = ~0u;
  std::vector<NodeId> above(topology.nodes.size(), kNone);
  for (const Link& link : topology.links) {
    if (link.kind != LinkKind::pci && link.kind != LinkKind::memory) continue;
    if (above[link.b] != kNone)
      return invalid_argument("two links of PCI or memory lead down to " + shown(topology, topology.nodes[link.b]));
    above[link.b] = link.a;
  }
  for (NodeId id = 0; id < topology.nodes.size(); ++id) {
    std::uint32_t depth = 0;
    for (NodeId at = id; above[at] != kNone; at = above[at])
      if (++depth > kMaxTopologyDepth)
        return invalid_argument(shown(topology, topology.nodes[id]) + " is below itself, or below more than " +
                                std::to_string(kMaxTopologyDepth) + " other nodes");
  }
  return {};
}

}  // namespace

const char* name(NodeKind kind) { return kNodeKinds[static_cast<std::size_t>(kind)].data(); }
const char* name(LinkKind kind) { return kLinkKinds[static_cast<std::size_t>(kind)].data(); }
Result<NodeKind> parse_node_kind(std::string_view text) { return parse<NodeKind>(text, kNodeKinds, "node"); }
Result<LinkKind> parse_link_kind(std::string_view text) { return parse<LinkKind>(text, kLinkKinds, "link"); }

NodeId Topology::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeId>(nodes.size() - 1);
}

const Node* Topology::find(std::string_view node_name) const {
  for (const Node& node : nodes)
    if (node.name == node_name) return &node;
  return nullptr;
}

std::vector<NodeId> Topology::all(NodeKind kind) const {
  std::vector<NodeId> found;
  for (NodeId i = 0; i < nodes.size(); ++i)
    if (nodes[i].kind == kind) found.push_back(i);
  return found;
}

std::vector<std::vector<NodeId>> Topology::by_host(NodeKind kind) const {
  std::vector<std::vector<NodeId>> found(hosts.size());
  for (const NodeId id : all(kind)) found[nodes[id].host].push_back(id);
  return found;
}

Status check(const Topology& topology) {
  if (topology.nodes.size() > kMaxNodes || topology.hosts.size() > kMaxNodes)
    return invalid_argument("more than " + std::to_string(kMaxNodes) + " nodes or hosts");
  TUTTI_CHECK_OK(check_texts(topology));
  std::set<std::pair<std::uint32_t, std::string_view>> names;
  for (const Node& node : topology.nodes) {
    if (node.host >= topology.hosts.size())
      return invalid_argument("node '" + node.name + "' is of host " + std::to_string(node.host) + " of " +
                              std::to_string(topology.hosts.size()));
    if (node.name.empty()) return invalid_argument("a node of host '" + topology.hosts[node.host] + "' has no name");
    if (!names.emplace(node.host, node.name).second) return invalid_argument("duplicate node " + shown(topology, node));
    TUTTI_CHECK_OK(check_rate(topology, node));
  }
  for (const Link& link : topology.links) TUTTI_CHECK_OK(check_link(topology, link));
  return check_trees(topology);
}

Result<Topology> checked(Topology topology, const std::string& origin) {
  const Status sound = check(topology);
  if (!sound.ok()) return invalid_argument(origin + ": " + sound.message());
  return topology;
}

Topology merged(Topology first, const Topology& second) {
  const auto hosts = static_cast<std::uint32_t>(first.hosts.size());
  const auto nodes = static_cast<NodeId>(first.nodes.size());
  first.hosts.insert(first.hosts.end(), second.hosts.begin(), second.hosts.end());
  for (Node node : second.nodes) {
    node.host += hosts;
    first.nodes.push_back(std::move(node));
  }
  for (Link link : second.links) {
    link.a += nodes;
    link.b += nodes;
    first.links.push_back(link);
  }
  first.notes.insert(first.notes.end(), second.notes.begin(), second.notes.end());
  return first;
}

}  // namespace tutti
