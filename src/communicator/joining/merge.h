// Knowledge about all hosts that ranks exchange when they join.
#pragma once

#include <memory>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/hosts.h"
#include "src/topology/merged.h"

namespace tutti {

// Returns the location of each rank, as sent while joining, and the topology of all hosts if a rank needs it. All
// ranks call this. The first rank of each host discovers its topology; of equal hosts only one sends it. Rank 0
// writes it to TUTTI_TOPO_DUMP_FILE. Unknown parts stay empty, with a note.
Result<Hosts> hosts_known_to_all(Bootstrap& bootstrap, const Watch& watch);

}  // namespace tutti
