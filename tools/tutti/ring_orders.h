// In which orders rings and chains go through the ranks of a host that is simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "src/model/network.h"
#include "src/plan/embedding.h"

namespace tutti {

// As a communicator on such GPUs has them, `most` at most. Empty where ranks are as they are numbered: without GPUs,
// where NVSwitches make all orders alike, and on several hosts, for which a network spreads what rings send over all
// ports.
std::vector<Embedding> orders_on(const Network& network, std::uint32_t most);

}  // namespace tutti
