// Location of a rank in its own host, and the topology of this host.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/bootstrap/location.h"
#include "src/topology/topology.h"

namespace tutti {

// Returns the location of this rank. `gpu` is the PCI bus id of its device; if empty, buffers lie in host memory, and
// the location is that of the calling thread. Uses the file TUTTI_TOPO_FILE if it is set, and fails if the file is
// unreadable or describes another machine. NCCL_TOPO_FILE is ignored with a warning in these cases. Otherwise uses
// sysfs; fields that it does not provide stay unset.
Result<Location> own_location(const std::string& gpu);

// Returns the topology of this host, without its name, from the file or by discovery. `gpu` is normalized as in a
// location.
Result<Topology> own_topology(const std::string& gpu);

}  // namespace tutti
