#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "src/base/cpu_list.h"
#include "src/topology/discover/files.h"
#include "src/topology/discover/parts.h"
#include "src/topology/figures.h"

namespace tutti {
namespace {

struct Maker {
  std::string vendor, name;
  std::uint32_t family = 0, model = 0;
};

// Reads the first processor; all processors of a machine are assumed equal.
Maker maker_of(const std::string& path) {
  Maker maker;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1), value = line.substr(colon + 2);
    if (key == "vendor_id") maker.vendor = value;
    if (key == "model name") maker.name = value;
    if (key == "cpu family") maker.family = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "model") maker.model = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
  }
  return maker;
}

// CPU list of the largest cache that this CPU shares; empty if only levels 1 and 2 are shared.
std::string sharers(const std::string& processor) {
  std::string shared;
  std::int64_t largest = 0;
  for (const std::string& index : entries(processor + "/cache")) {
    const std::string cache = processor + "/cache/" + index;
    const std::int64_t level = number_in(cache + "/level").value_or(0);
    if (level <= largest) continue;
    largest = level;
    shared = first_line(cache + "/shared_cpu_list").value_or("");
  }
  return largest >= 3 ? shared : "";
}

void find_caches(TopologyTree& tree, NodeId numa, const std::string& processors,
                 const std::vector<std::uint32_t>& cpus) {
  std::set<std::string> seen;
  for (const std::uint32_t cpu : cpus) {
    const std::string shared = sharers(processors + "/cpu" + std::to_string(cpu));
    if (shared.empty() || !seen.insert(shared).second) continue;
    Node node;
    node.kind = NodeKind::cpu;
    node.index = static_cast<std::uint32_t>(tree.topology.all(NodeKind::cpu).size());
    node.name = "cpu" + std::to_string(node.index);
    node.cpus = shared;
    tree.connect(numa, tree.add(std::move(node)), LinkKind::memory, kMemoryGbytesPerS);
  }
}

}  // namespace

Result<std::string> find_processors(TopologyTree& tree, const Sources& sources) {
  const std::string devices = sources.sys + "/devices/system";
  const Maker maker = maker_of(sources.proc + "/cpuinfo");
  const auto add = [&](std::uint32_t index, const std::string& cpus) -> Status {
    const std::vector<std::uint32_t> each = TUTTI_TRY(cpus_of_list(cpus));
    Node node;
    node.index = index;
    node.name = "numa" + std::to_string(index);
    node.model = maker.vendor.empty() ? maker.name : processor_model(maker.vendor, maker.family, maker.model);
    node.cpus = cpus;
    find_caches(tree, tree.add(std::move(node)), devices + "/cpu", each);
    return {};
  };
  for (const std::string& name : entries(devices + "/node")) {
    std::uint32_t index = 0;
    char more = 0;
    if (std::sscanf(name.c_str(), "node%u%c", &index, &more) != 1) continue;
    const std::string cpus = first_line(devices + "/node/" + name + "/cpulist").value_or("");
    if (!cpus.empty()) TUTTI_CHECK_OK(add(index, cpus));  // Domains without CPUs are memory only.
  }
  std::size_t domains = tree.topology.all(NodeKind::numa).size();
  if (domains == 0) {  // A kernel without NUMA support.
    const std::optional<std::string> online = first_line(devices + "/cpu/online");
    if (!online) return system_error("read " + devices + "/cpu/online");
    TUTTI_CHECK_OK(add(0, *online));
    domains = 1;
  }
  tree.connect_sockets(0, smp_gbytes_per_s(maker.vendor, maker.family, maker.model));
  return std::to_string(domains) + (domains == 1 ? " NUMA domain, " : " NUMA domains, ") +
         std::to_string(tree.topology.all(NodeKind::cpu).size()) + " shared caches" +
         (maker.name.empty() ? "" : ", " + maker.name);
}

}  // namespace tutti
