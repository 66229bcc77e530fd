// NVLink domains: hosts whose devices access each other's memory, as in a rack with GB200 NVL72.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/call/hosts.h"
#include "src/communicator/communicator.h"
#include "src/executor/thread_block/device.h"

namespace tutti {

// False if the configuration of this process disables domains of several hosts.
bool joins_domains();

// Collective: joins the hosts of each domain in a placement of the ranks, in which they count as one host. `domains`:
// by rank. Only hosts all of whose ranks are in the same domain are joined. First, each rank opens memory of all ranks
// of the other hosts of its domain. If a rank fails, the hosts of its domain are not joined, and rank 0 warns.
// Returns the same placement on all ranks: that of the communicator if no hosts are joined. Fails if the ranks cannot
// communicate. `members`: ranks that this thread drives, on `device`.
Result<Hosts> join_nvlink_domains(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device,
                                  const std::vector<NvlinkDomain>& domains);

}  // namespace tutti
