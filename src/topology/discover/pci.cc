#include <cstdio>
#include <string>
#include <vector>

#include "src/topology/discover/files.h"
#include "src/topology/discover/parts.h"
#include "src/topology/figures.h"
#include "src/topology/fill.h"

namespace tutti {
namespace {

constexpr std::uint64_t kNvidia = 0x10de;

// Returns the sysfs folders of a device and of all PCI bridges above it, starting at the processor.
std::vector<std::string> line_of(const std::string& device) {
  std::vector<std::string> folders;
  for (std::size_t end = device.find('/', 1); end != std::string::npos; end = device.find('/', end + 1)) {
    const std::string folder = device.substr(0, end);
    if (is_bus_id(folder.substr(folder.rfind('/') + 1))) folders.push_back(folder);
  }
  folders.push_back(device);
  return folders;
}

struct Speed {
  double gbytes_per_s;
  std::uint32_t lanes;
};

// Links without speed data, as in virtual machines, count as generation 3 x16, as in NCCL.
Speed speed_of(const std::string& folder) {
  double gigatransfers = 0;
  // The current speed drops when a link is idle.
  const std::string speed = first_line(folder + "/max_link_speed").value_or("");
  if (std::sscanf(speed.c_str(), "%lf GT/s", &gigatransfers) != 1 || !(gigatransfers > 0)) gigatransfers = 8;
  const std::int64_t width = number_in(folder + "/current_link_width").value_or(0);
  const auto lanes = static_cast<std::uint32_t>(width > 0 && width <= 32 ? width : 16);
  return {pci_gbytes_per_s(gigatransfers, lanes), lanes};
}

NodeId domain_of(const TopologyTree& tree, const std::string& folder) {
  const std::vector<NodeId> domains = tree.topology.all(NodeKind::numa);
  const std::int64_t reported = number_in(folder + "/numa_node").value_or(-1);
  for (const NodeId id : domains)
    if (tree.topology.nodes[id].index == reported) return id;
  return domains.front();  // Machines with one domain report -1.
}

NodeId bridge(TopologyTree& tree, const std::string& folder, NodeId above) {
  Node node;
  node.kind = NodeKind::pci_switch;
  node.bus_id = normal_bus_id(folder.substr(folder.rfind('/') + 1));
  if (const NodeId* known = tree.on_bus(0, node.bus_id)) return *known;
  node.name = "pci " + node.bus_id;
  const Speed speed = speed_of(folder);
  const NodeId id = tree.add(std::move(node));
  tree.connect(above, id, LinkKind::pci, speed.gbytes_per_s, speed.lanes);
  return id;
}

}  // namespace

Result<std::string> find_pci(TopologyTree& tree, const Sources& sources) {
  const std::string bus = sources.sys + "/bus/pci/devices";
  std::size_t gpus = 0, switches = 0, nics = 0;
  for (const std::string& name : entries(bus)) {
    const std::string folder = resolved(bus + "/" + name);
    if (folder.empty() || tree.on_bus(0, normal_bus_id(name)) != nullptr) continue;
    const auto pci_class = static_cast<std::uint64_t>(number_in(folder + "/class").value_or(0));
    const auto vendor = static_cast<std::uint32_t>(number_in(folder + "/vendor").value_or(0));
    const auto device = static_cast<std::uint32_t>(number_in(folder + "/device").value_or(0));
    Node node;
    node.bus_id = normal_bus_id(name);
    node.model = model_of(vendor, device);
    if (is_gpu(pci_class) && vendor == kNvidia) {
      const GpuModel* model = gpu_model(device);
      node.kind = NodeKind::gpu;
      node.index = kUnnumbered;
      node.sm = model == nullptr ? 0 : model->sm;
      node.name = "gpu " + node.bus_id;
      ++gpus;
    } else if (is_nvswitch(pci_class) && vendor == kNvidia) {
      node.kind = NodeKind::nvswitch;
      node.name = "nvswitch" + std::to_string(switches++);
    } else if (is_nic(pci_class)) {
      node.kind = NodeKind::nic;
      node.index = 1;
      node.name = "nic " + node.bus_id;
      ++nics;
    } else {
      continue;
    }
    const std::vector<std::string> folders = line_of(folder);
    NodeId above = domain_of(tree, folder);
    for (std::size_t i = 0; i + 1 < folders.size(); ++i) above = bridge(tree, folders[i], above);
    const Speed speed = speed_of(folder);
    tree.connect(above, tree.add(std::move(node)), LinkKind::pci, speed.gbytes_per_s, speed.lanes);
  }
  tree.number_gpus();
  return std::to_string(gpus) + " GPUs, " + std::to_string(switches) + " NVSwitches, " + std::to_string(nics) +
         " network cards";
}

}  // namespace tutti
