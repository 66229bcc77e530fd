#include "src/topology/discover/local_host.h"

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

std::optional<std::uint32_t> domain_of_device(const std::string& bus_id, const Sources& sources) {
  if (!is_bus_id(bus_id)) return std::nullopt;
  const std::int64_t domain = number_in(sources.sys + "/bus/pci/devices/" + bus_id + "/numa_node").value_or(-1);
  return domain < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(domain));
}

}  // namespace tutti
