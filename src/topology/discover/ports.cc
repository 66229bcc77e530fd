#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "src/base/split_at.h"
#include "src/topology/discover/files.h"
#include "src/topology/discover/parts.h"
#include "src/topology/figures.h"

namespace tutti {
namespace {

struct Port {
  std::string name;
  std::uint32_t number = 1;
  double gbytes_per_s = 0;
  bool down = false;
};

// Returns the bus id of the innermost PCI device above a sysfs folder; empty for virtual devices.
std::string bus_id_above(const std::string& folder) {
  std::string found;
  for (const std::string_view part : split_at(folder, '/'))
    if (is_bus_id(part)) found = part;
  return found;
}

using Ports = std::map<std::string, std::vector<Port>>;  // Key: bus id.

std::size_t find_rdma(Ports& ports, const std::string& devices) {
  std::size_t count = 0;
  for (const std::string& device : entries(devices)) {
    const std::string bus_id = bus_id_above(resolved(devices + "/" + device));
    if (bus_id.empty()) continue;
    for (const std::string& number : entries(devices + "/" + device + "/ports")) {
      const std::string folder = devices + "/" + device + "/ports/" + number;
      Port port;
      port.number = static_cast<std::uint32_t>(std::strtoul(number.c_str(), nullptr, 10));
      port.name = port.number == 1 ? device : device + ":" + number;
      port.down = !first_line(folder + "/state").value_or("").starts_with("4:");  // "4: ACTIVE" is up.
      double gigabits = 0;
      if (std::sscanf(first_line(folder + "/rate").value_or("").c_str(), "%lf Gb/sec", &gigabits) == 1)
        port.gbytes_per_s = nic_gbytes_per_s(gigabits * 1000);
      ports[bus_id].push_back(std::move(port));
      ++count;
    }
  }
  return count;
}

// Skips NICs with RDMA ports, because their interfaces are the same physical ports.
std::size_t find_interfaces(Ports& ports, const std::string& interfaces) {
  std::size_t count = 0;
  Ports found;
  for (const std::string& name : entries(interfaces)) {
    const std::string bus_id = bus_id_above(resolved(interfaces + "/" + name));
    if (bus_id.empty() || ports.contains(bus_id)) continue;
    Port port;
    port.name = name;
    port.down = first_line(interfaces + "/" + name + "/operstate").value_or("up") == "down";
    const std::int64_t megabits = number_in(interfaces + "/" + name + "/speed").value_or(0);  // -1: unknown.
    if (megabits > 0) port.gbytes_per_s = nic_gbytes_per_s(static_cast<double>(megabits));
    found[bus_id].push_back(std::move(port));
    ++count;
  }
  ports.merge(found);
  return count;
}

}  // namespace

Result<std::string> find_ports(TopologyTree& tree, const Sources& sources) {
  Ports ports;
  const std::size_t rdma = find_rdma(ports, sources.sys + "/class/infiniband");
  const std::size_t interfaces = find_interfaces(ports, sources.sys + "/class/net");
  for (const NodeId id : tree.topology.all(NodeKind::nic)) {
    const auto found = ports.find(tree.topology.nodes[id].bus_id);
    if (found == ports.end()) continue;  // No driver is bound.
    const Node card = tree.topology.nodes[id];
    const Link above = tree.link_above(id);
    bool first = true;
    for (const Port& port : found->second) {
      Node node = card;
      node.name = port.name;
      node.index = port.number;
      node.gbytes_per_s = port.gbytes_per_s;
      node.down = port.down;
      if (first) {
        tree.topology.nodes[id] = std::move(node);
      } else {
        tree.connect(above.a, tree.add(std::move(node)), LinkKind::pci, above.gbytes_per_s, above.width);
      }
      first = false;
    }
  }
  return std::to_string(rdma) + " RDMA ports, " + std::to_string(interfaces) + " other network interfaces";
}

}  // namespace tutti
