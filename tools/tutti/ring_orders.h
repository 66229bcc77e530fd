// Rank orders of simulated rings, chains and trees.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/plan/rank_mapping.h"
#include "tools/simulator/network.h"

namespace tutti::tool {

struct HostRings {
  std::vector<RankMapping> orders;
  bool only_rings = false;  // See Query.
};

// Returns at most `max_orders` orders, which are the orders of a communicator on such GPUs. Empty, which means the
// order of rank numbers, in these cases: there are no GPUs; NVSwitches of a single host make all orders equivalent;
// NVLinks connect the hosts of a rack; or there are too many ranks to simulate each of them.
HostRings orders_on(const simulator::Network& network, std::uint32_t max_orders);

// Returns the rank orders with which an algorithm is simulated. On several hosts only trees have them, because it
// matters which rank represents a host. In rings, all ranks of a host send and receive equally.
std::vector<RankMapping> orders_of(const simulator::Network& network, const HostRings& rings,
                                   std::string_view algorithm);

}  // namespace tutti::tool
