// Networks on which `tutti simulate` simulates calls.
#pragma once

#include <string>

#include "tools/simulator/network.h"
#include "tools/tutti/simulate_request.h"

namespace tutti::tool {

// Algorithms with groups send over each rank's own port. Other algorithms use a different order of ranks for each
// channel, so that all ports of a host have the same load.
struct Networks {
  simulator::Network own, spread;
  std::string note = {};  // Reason why `spread` is not used; empty: it is.
};

// Reads the requested topology. Fails if that or its layout fails, or if it already has the value of --gpu.
Result<Networks> networks_of(const SimulateRequest& request);

}  // namespace tutti::tool
