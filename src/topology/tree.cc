#include "src/topology/tree.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "src/topology/figures.h"

namespace tutti {

std::string normal_bus_id(std::string_view text) {
  std::string id(text);
  std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::count(id.begin(), id.end(), ':') == 1) id = "0000:" + id;
  if (id.find('.') == std::string::npos) id += ".0";
  if (id.size() > 12 && id.find_first_not_of('0') >= id.size() - 12)
    id.erase(0, id.size() - 12);  // NVML writes longer domains.
  return id;
}

std::string processor_model(const std::string& vendor, std::uint32_t family, std::uint32_t model) {
  if (vendor.empty()) return "";
  return vendor + " family " + std::to_string(family) + " model " + std::to_string(model);
}

bool is_bus_id(std::string_view text) {
  // Maximum number of digits, and the separator after them.
  constexpr std::pair<std::size_t, std::string_view> kParts[] = {{8, ":"}, {4, ":"}, {2, "."}, {1, ""}};
  for (const auto& [max, behind] : kParts) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789abcdefABCDEF"), text.size());
    if (digits == 0 || digits > max) return false;
    text.remove_prefix(digits);
    if (!text.starts_with(behind)) return false;
    text.remove_prefix(behind.size());
  }
  return text.empty();
}

// The class code is 24 bits; the upper 16 are class and subclass.
bool is_pci_switch(std::uint64_t pci_class) { return pci_class >> 8 == 0x0604; }
bool is_gpu(std::uint64_t pci_class) { return pci_class >> 8 == 0x0302 || pci_class >> 8 == 0x0300; }
bool is_nic(std::uint64_t pci_class) { return pci_class >> 8 == 0x0207 || pci_class >> 8 == 0x0200; }
bool is_nvswitch(std::uint64_t pci_class) { return pci_class >> 8 == 0x0680; }

std::uint32_t TopologyTree::host(const std::string& name) {
  const auto [known, is_new] = hosts_.try_emplace(name, static_cast<std::uint32_t>(topology.hosts.size()));
  if (is_new) topology.hosts.push_back(name);
  return known->second;
}

NodeId TopologyTree::add(Node node) {
  int& times = names_[{node.host, node.name}];
  if (times++ > 0) node.name += "#" + std::to_string(times);
  const std::pair<std::uint32_t, std::string> bus(node.host, node.bus_id);
  const NodeId id = topology.add(std::move(node));
  if (!bus.second.empty()) buses_.emplace(bus, id);
  return id;
}

void TopologyTree::connect(NodeId a, NodeId b, LinkKind kind, double gbytes_per_s, std::uint32_t width) {
  topology.connect({a, b, kind, gbytes_per_s, latency_us(kind), width});
}

const NodeId* TopologyTree::on_bus(std::uint32_t host, const std::string& bus_id) const {
  const auto found = buses_.find({host, bus_id});
  return found == buses_.end() ? nullptr : &found->second;
}

NodeId TopologyTree::nvswitch(std::uint32_t host, const std::string& bus_id) {
  if (const NodeId* known = on_bus(host, bus_id)) return *known;
  Node node;
  node.kind = NodeKind::nvswitch;
  node.host = host;
  node.index = nvswitches_++;
  node.name = "nvswitch " + bus_id;
  node.bus_id = bus_id;
  return add(std::move(node));
}

const Link& TopologyTree::link_above(NodeId id) const {
  const auto& links = topology.links;
  const auto found = std::find_if(links.begin(), links.end(), [&](const Link& link) {
    return link.b == id && (link.kind == LinkKind::pci || link.kind == LinkKind::memory);
  });
  TUTTI_ASSERT(found != links.end());  // Every node is added with a parent.
  return *found;
}

void TopologyTree::take(Topology made) {
  topology = std::move(made);
  names_.clear();
  hosts_.clear();
  for (std::uint32_t host = 0; host < topology.hosts.size(); ++host) hosts_[topology.hosts[host]] = host;
  nvswitches_ = static_cast<std::uint32_t>(topology.all(NodeKind::nvswitch).size());
  buses_.clear();
  for (NodeId id = 0; id < topology.nodes.size(); ++id) {
    const Node& node = topology.nodes[id];
    names_[{node.host, node.name}] = 1;
    if (!node.bus_id.empty()) buses_.emplace(std::pair(node.host, node.bus_id), id);
  }
}

void TopologyTree::number_gpus() {
  std::vector<Node>& nodes = topology.nodes;
  for (std::vector<NodeId>& gpus : topology.by_host(NodeKind::gpu)) {
    std::uint32_t next = 0;
    for (const NodeId gpu : gpus)
      if (nodes[gpu].index != kUnnumbered) next = std::max(next, nodes[gpu].index + 1);
    std::erase_if(gpus, [&](NodeId gpu) { return nodes[gpu].index != kUnnumbered; });
    std::sort(gpus.begin(), gpus.end(), [&](NodeId a, NodeId b) { return nodes[a].bus_id < nodes[b].bus_id; });
    for (const NodeId gpu : gpus) nodes[gpu].index = next++;
  }
  for (Node& node : nodes)
    if (node.kind == NodeKind::gpu) node.name = "gpu" + std::to_string(node.index);
}

void TopologyTree::connect_all(const std::vector<NodeId>& sockets, double gbytes_per_s) {
  for (std::size_t a = 0; a < sockets.size(); ++a)
    for (std::size_t b = a + 1; b < sockets.size(); ++b) connect(sockets[a], sockets[b], LinkKind::smp, gbytes_per_s);
}

void TopologyTree::connect_sockets(std::uint32_t host, double gbytes_per_s) {
  connect_all(topology.by_host(NodeKind::numa)[host], gbytes_per_s);
}

void TopologyTree::connect_sockets(const std::vector<double>& gbytes_per_s) {
  const std::vector<std::vector<NodeId>> sockets = topology.by_host(NodeKind::numa);
  for (std::size_t host = 0; host < sockets.size(); ++host) connect_all(sockets[host], gbytes_per_s[host]);
}

}  // namespace tutti
