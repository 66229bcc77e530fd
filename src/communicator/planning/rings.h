// Rank orders of rings and chains on devices, chosen by the links between GPUs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/communicator/call/hosts.h"
#include "src/plan/problem.h"
#include "src/plan/rank_mapping.h"

namespace tutti {

// Maximum orders of rings that a communicator uses.
inline constexpr std::uint32_t kMaxRingOrders = 8;

struct RingOrders {
  std::vector<RankMapping> each;  // At least one. Channels use them in turn.
  bool only_rings = false;        // See Query::only_rings.
};

// Returns the rank orders of rings from src/tuner/map_ranks.h, at most `max_rings`, with hosts as groups. Returns one
// entry without an order if the topology of a host or the GPU of a rank is unknown. Equal on all ranks.
RingOrders ring_orders(const Hosts& hosts, std::uint32_t max_rings);

// Returns the mapping for several hosts. Like rank_mapping_of(), but orders the ranks of a host by the network ports
// nearest to their GPUs. Ranks with the same position on each host are then on one rail. Returns rank order if this is
// unknown. Equal on all ranks.
RankMapping rail_rank_mapping(const Hosts& hosts);

// Returns whether plans use rail_rank_mapping() although blocks belong to ranks. Blocks then move with the ranks.
// Requires an algorithm that works across hosts, and operands of one block each.
bool moves_blocks_with_ranks(std::string_view algorithm, Collective collective);

}  // namespace tutti
