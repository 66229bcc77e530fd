// In which orders rings, chains and trees go through ranks that are simulated.
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

// As a communicator on such GPUs has them, `most` at most. None where ranks are as they are numbered: without GPUs,
// where NVSwitches of a single host make all orders alike, in a rack whose hosts NVLinks join, and of more ranks than
// can be simulated each for itself.
HostRings orders_on(const simulator::Network& network, std::uint32_t most);

// Rank orders with which an algorithm is simulated. On several hosts only trees have them, because the
// representatives of a host matter there; in rings all ranks of a host take part alike.
std::vector<RankMapping> orders_of(const simulator::Network& network, const HostRings& rings,
                                   std::string_view algorithm);

}  // namespace tutti::tool
