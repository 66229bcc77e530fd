// What all ranks know of all hosts, once they have told each other.
#pragma once

#include <memory>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/hosts.h"
#include "src/topology/merged.h"

namespace tutti {

// Where each rank is, as it said while joining; and if one of them wants it, the topology of all hosts, for which all
// ranks call this: the first rank of each host looks around there, and of hosts that are alike one tells. Rank 0 writes
// it to TUTTI_TOPO_DUMP_FILE. What cannot be found out is left open, with a note.
Result<Hosts> hosts_known_to_all(Bootstrap& bootstrap, const Watch& watch);

}  // namespace tutti
