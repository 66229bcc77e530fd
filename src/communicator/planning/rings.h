// In which orders rings and chains go through ranks on devices: along what joins their GPUs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/communicator/hosts.h"
#include "src/plan/problem.h"
#include "src/plan/rank_mapping.h"

namespace tutti {

struct RingOrders {
  std::vector<RankMapping> each;  // Channels take them in turns. One at least.
  bool only_rings = false;        // See Query.
};

// Those of the rings of src/tuner/map_ranks.h, `most` at most, with the hosts as groups; one without an order where the
// topology of some rank's host, or its GPU, is unknown. The same on all ranks.
RingOrders ring_orders(const Hosts& hosts, std::uint32_t most);

// Of several hosts: as rank_mapping_of(), and the ranks of a host in the order of the ports that are nearest to their
// GPUs, so that those who speak for a part of each host are on one rail. As they are numbered where that is unknown.
// The same on all ranks.
RankMapping rail_rank_mapping(const Hosts& hosts);

// Whether its plans are embedded by rail_rank_mapping() although blocks belong to ranks, which then go with them: it
// knows hosts, and has operands of one block each.
bool takes_blocks_along(std::string_view algorithm, Collective collective);

}  // namespace tutti
