// In which orders rings and chains go through the ranks of a host that is simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "src/model/network.h"
#include "src/plan/embedding.h"

namespace tutti {

struct HostRings {
  std::vector<Embedding> orders;
  bool only_rings = false;  // See Query.
};

// As a communicator on such GPUs has them, `most` at most. None where ranks are as they are numbered: without GPUs,
// where NVSwitches make all orders alike, and on several hosts, for which a network spreads what rings send over all
// ports.
HostRings orders_on(const Network& network, std::uint32_t most);

}  // namespace tutti
