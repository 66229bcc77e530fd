// Topologies by the names that people give them.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti {

// A preset, or a file of this name; what is known of such machines is filled in.
Result<Topology> named_topology(const std::string& name);

}  // namespace tutti
