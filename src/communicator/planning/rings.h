// In which orders rings and chains go through ranks on devices: along what joins their GPUs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/communicator/hosts.h"
#include "src/plan/embedding.h"

namespace tutti {

// The orders of the rings of src/tuner/embed.h, `most` at most, with the hosts as groups: channels take them in turns.
// One without an order where the topology of some rank's host, or its GPU, is unknown. The same on all ranks.
std::vector<Embedding> ring_embeddings(const Hosts& hosts, std::uint32_t most);

// Whether in an algorithm of this name ranks only speak to those before and behind them, so that the order of ranks is
// all that counts.
bool goes_round(std::string_view algorithm);

}  // namespace tutti
