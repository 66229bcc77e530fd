// Knowledge of a rank about its own host: its location and the topology.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/bootstrap/location.h"
#include "src/topology/topology.h"

namespace tutti {

// `gpu`: the bus id of its device; empty: its buffers lie in host memory, and the thread that asks is where it runs.
// With TUTTI_TOPO_FILE by that file, which is an error if it cannot be read or is of another machine; NCCL_TOPO_FILE is
// left out then, with a warning. Else by sysfs, and what that does not tell is left open.
Result<Location> own_location(const std::string& gpu);

// As the file says, or as discovery finds it: of one host, which is not named. `gpu`: as it is
// normalised in a location.
Result<Topology> own_topology(const std::string& gpu);

}  // namespace tutti
