// Sources of discover(). Each function adds nodes and links to `tree` and returns a summary. A function that finds
// nothing fails with the reason.
#pragma once

#include <string>

#include "src/topology/discover/discover.h"
#include "src/topology/tree.h"

namespace tutti {

// NUMA domains, and the groups of CPUs that share a cache.
Result<std::string> find_processors(TopologyTree& tree, const Sources& sources);
// GPUs, NVSwitches and NICs, with the PCI switches above them.
Result<std::string> find_pci(TopologyTree& tree, const Sources& sources);
// Ports of NICs: RDMA ports where a NIC has any, otherwise its network interfaces. Known NIC models get a name and a
// speed.
Result<std::string> find_ports(TopologyTree& tree, const Sources& sources);
Result<std::string> query_nvml(TopologyTree& tree, const std::string& library);
// Processors and PCI from hwloc, as a separate topology.
Result<Topology> query_hwloc(const std::string& library);

}  // namespace tutti
