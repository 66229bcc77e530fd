// Topologies in files, for whoever names one.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti {

// Ours, NCCL's or hwloc's. Fails with the path, and with the line where the text is none.
Result<Topology> read_topology_file(const std::string& path);
// By the end of its name: .json is ours, all others are NCCL's. What was there is replaced.
Status write_topology_file(const std::string& path, const Topology& topology);

// One host of several: that of this name, or whichever there is if there is one only. What leads to other hosts is left
// out.
Result<Topology> only_host(const Topology& topology, const std::string& name, const std::string& origin);

}  // namespace tutti
