#include "src/topology/discover/discover.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "src/topology/discover/local_host.h"
#include "src/topology/discover/parts.h"

namespace tutti {
namespace {

void report(Discovery& discovery, std::string source, Result<std::string> found) {
  const bool good = found.ok();
  std::string words = good ? std::move(found).value() : std::move(found).status().message();
  discovery.sources.push_back({std::move(source), good, std::move(words)});
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

Result<Discovery> discover(const Sources& sources) {
  Discovery discovery;
  TopologyTree tree;
  if (!sources.hwloc.empty()) {
    Result<Topology> reported = query_hwloc(sources.hwloc);
    report(discovery, "hwloc",
           reported.ok() ? Result<std::string>("processors and PCI") : std::move(reported).status());
    if (reported.ok()) tree.take(std::move(reported).value());
  }
  if (tree.topology.nodes.empty()) {
    tree.host(host_name());
    Result<std::string> processors = find_processors(tree, sources);
    if (!processors.ok()) return std::move(processors).status().during("discovering processors");
    report(discovery, "sysfs: processors", std::move(processors));
    report(discovery, "sysfs: PCI", find_pci(tree, sources));
  }
  report(discovery, "sysfs: network", find_ports(tree, sources));
  report(discovery, "NVML", query_nvml(tree, sources.nvml));
  tree.topology.hosts = {host_name()};
  discovery.topology = std::move(tree.topology);
  TUTTI_CHECK_OK(check(discovery.topology).during("discovering this machine"));
  return discovery;
}

}  // namespace tutti
