// The parts of discover(), one for each source. Each adds to the tree what it finds, and says what that was, or fails
// with why it found nothing.
#pragma once

#include <string>

#include "src/topology/discover/discover.h"
#include "src/topology/tree.h"

namespace tutti {

// NUMA domains with the caches their processors share.
Result<std::string> find_processors(TopologyTree& tree, const Sources& sources);
// GPUs, NVSwitches and network cards, and the switches above them.
Result<std::string> find_pci(TopologyTree& tree, const Sources& sources);
// Ports of network cards: those of RDMA where there are some, else interfaces. Known cards are named and given a speed.
Result<std::string> find_ports(TopologyTree& tree, const Sources& sources);
Result<std::string> ask_nvml(TopologyTree& tree, const std::string& library);
// Processors and PCI together, as a tree of its own.
Result<Topology> ask_hwloc(const std::string& library);

}  // namespace tutti
