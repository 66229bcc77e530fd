// Topology files named by the user.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti {

// Reads our JSON, NCCL's XML or hwloc's XML. Errors contain the path, and the line of a malformed text.
Result<Topology> read_topology_file(const std::string& path);
// Writes our JSON if `path` ends with .json, otherwise NCCL's XML. An existing file is overwritten.
Status write_topology_file(const std::string& path, const Topology& topology);

// Extracts one host: the host called `name`, or the only host whatever its name. Links to other hosts are dropped.
// Fails if there are several hosts and no host has this name; `origin` begins the error message.
Result<Topology> only_host(const Topology& topology, const std::string& name, const std::string& origin);

}  // namespace tutti
