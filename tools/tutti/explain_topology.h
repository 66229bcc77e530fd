// `tutti explain` of machines that are not here.
#pragma once

#include <string>

#include "src/tuner/choose.h"
#include "tools/tutti/call_model.h"

namespace tutti::tool {

// Topology to explain: its ranks, by the constants of `tutti simulate`.
struct ExplainedTopology {
  std::string name;
  std::string gpu;                  // Model of its GPUs; empty: as in the topology.
  std::string hosts;                // How many; empty: those of the topology.
  std::uint32_t nvlink_domain = 0;  // Hosts of an NVLink domain; 0: as in the topology.
};

// Properties that predictions need.
struct KnownTopology {
  CallModel model;    // Times of calls.
  Machine machine;    // Cost model, for the choice of a compression format.
  std::string links;  // As src/communicator/planning/machine_name.h has them; empty: of several hosts.
};

// Fills in the problem of the query, its thread blocks and whether it goes over a network. The query's ranks, if it has
// any, must be those of the topology. invalid_argument where there is no such topology, or no GPUs in it, or where
// nobody says what they are.
Result<KnownTopology> explain_on(const ExplainedTopology& topology, Query& query);

}  // namespace tutti::tool
