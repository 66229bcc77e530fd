// What `tutti simulate` was asked to simulate calls on.
#pragma once

#include <string>

#include "tools/simulator/network.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

// Algorithms that know hosts send over each rank's own port. Others know one order of ranks, which is another one for
// each channel, so that all ports of a host have their share.
struct Networks {
  simulator::Network own, spread;
  std::string note = {};  // Why `spread` is not, if so.
};

// Reads the topology that is named. Fails as reading and laying it out do, or if it says already what --gpu would.
Result<Networks> networks_of(const SimulateRequest& request);

}  // namespace tutti::tool
