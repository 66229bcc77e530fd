// In which order rings and chains go through ranks on devices: along what joins their GPUs.
#pragma once

#include "src/communicator/hosts.h"
#include "src/plan/algorithm.h"
#include "src/plan/embedding.h"

namespace tutti {

// The order of the first ring of src/tuner/embed.h, with the hosts as groups; no order where the topology of some
// rank's host, or its GPU, is unknown. The same on all ranks.
Embedding ring_embedding(const Hosts& hosts);

// Whether ranks only speak to those before and behind them, so that the order of ranks is all that counts.
bool goes_round(const Algorithm& algorithm);

}  // namespace tutti
