#include "src/topology/discover/here.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "src/base/cpu_list.h"
#include "src/topology/discover/files.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

bool has_all(const std::string& list, const std::vector<std::uint32_t>& cpus) {
  const Result<std::vector<std::uint32_t>> read = cpus_of_list(list);
  if (!read.ok() || cpus.empty()) return false;
  const std::set<std::uint32_t> those(read.value().begin(), read.value().end());
  return std::all_of(cpus.begin(), cpus.end(), [&](std::uint32_t cpu) { return those.contains(cpu); });
}

// Number of path components that two sysfs folders share, counted from the root complex.
std::size_t shared_devices(const std::string& one, const std::string& other) {
  std::size_t shared = 0;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()) && one[i] == other[i]; ++i) shared += one[i] == '/';
  return shared;
}

}  // namespace

std::optional<std::uint32_t> domain_of_cpus(const std::vector<std::uint32_t>& cpus, const Sources& sources) {
  const std::string nodes = sources.sys + "/devices/system/node";
  for (const std::string& name : entries(nodes)) {
    std::uint32_t index = 0;
    char more = 0;
    if (std::sscanf(name.c_str(), "node%u%c", &index, &more) != 1) continue;
    if (has_all(first_line(nodes + "/" + name + "/cpulist").value_or(""), cpus)) return index;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> domain_of_cpus(const std::vector<std::uint32_t>& cpus, const Topology& host) {
  for (const Node& node : host.nodes)
    if (node.kind == NodeKind::numa && has_all(node.cpus, cpus)) return node.index;
  return std::nullopt;
}

DeviceLocation locate_device(const std::string& bus_id, const Sources& sources) {
  DeviceLocation location;
  if (!is_bus_id(bus_id)) return location;
  const std::string device = resolved(sources.sys + "/bus/pci/devices/" + bus_id);
  if (device.empty()) return location;
  location.found = true;
  const std::int64_t domain = number_in(device + "/numa_node").value_or(-1);  // -1: the firmware does not report it.
  if (domain >= 0) location.domain = static_cast<std::uint32_t>(domain);
  std::vector<std::string> nearest;
  std::size_t most = 0;
  for (const std::string& port : entries(sources.sys + "/class/infiniband")) {
    const std::size_t shared = shared_devices(device, resolved(sources.sys + "/class/infiniband/" + port));
    if (shared > most) nearest.clear();
    if (shared >= most) nearest.push_back(port);
    most = std::max(most, shared);
  }
  if (nearest.empty()) return location;
  std::size_t before = 0;  // Devices of the same PCI class with a smaller bus id.
  const std::string kind = first_line(device + "/class").value_or("");
  for (const std::string& other : entries(sources.sys + "/bus/pci/devices"))
    before += other < bus_id && first_line(sources.sys + "/bus/pci/devices/" + other + "/class").value_or("") == kind;
  location.port = nearest[before % nearest.size()];
  return location;
}

}  // namespace tutti
