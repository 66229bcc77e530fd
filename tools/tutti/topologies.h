// Topologies by the names that people give them.
#pragma once

#include <string>

#include "src/topology/topology.h"

namespace tutti::tool {

// A preset, or a file of this name; what is known of such machines is filled in. `gpu`: as below; empty: as it is.
Result<Topology> named_topology(const std::string& name, const std::string& gpu = {});

// Says what the GPUs are where `topology`, called `name`, does not. invalid_argument where there are none, where it is
// known already, and for models that are not.
Status name_gpus(Topology& topology, const std::string& name, const std::string& gpu);

}  // namespace tutti::tool
