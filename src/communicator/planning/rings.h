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

// Rank orders of the rings of src/tuner/map_ranks.h, at most `most`, with the hosts as groups. One entry without an
// order if the topology of a host, or the GPU of a rank, is unknown. The same on all ranks.
RingOrders ring_orders(const Hosts& hosts, std::uint32_t most);

// Several hosts: like rank_mapping_of(), with the ranks of a host ordered by the network ports nearest to their
// GPUs, so that ranks that represent a part of each host are on one rail. In rank order if that is unknown. The
// same on all ranks.
RankMapping rail_rank_mapping(const Hosts& hosts);

// Whether its plans are embedded by rail_rank_mapping() although blocks belong to ranks, which then go with them: it
// knows hosts, and has operands of one block each.
bool takes_blocks_along(std::string_view algorithm, Collective collective);

}  // namespace tutti
