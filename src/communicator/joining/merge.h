// Exchange of the locations and topologies of all hosts when ranks join.
#pragma once

#include <memory>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/call/hosts.h"
#include "src/topology/merged.h"

namespace tutti {

// Returns the location of each rank, as sent while joining, and the topology of all hosts if a rank needs it. All ranks
// must call this. The first rank of each host discovers its topology; identical hosts are deduplicated, so only one of
// them sends it. Rank 0 writes the topology to TUTTI_TOPO_DUMP_FILE. Unknown hosts stay empty, with a warning.
Result<Hosts> gather_hosts(Bootstrap& bootstrap, const Watch& watch);

}  // namespace tutti
