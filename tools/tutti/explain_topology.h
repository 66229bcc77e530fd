// Topologies of other machines for `tutti explain`.
#pragma once

#include <string>

#include "src/tuner/choose.h"
#include "tools/tutti/call_model.h"

namespace tutti::tool {

// Topology to explain, from the options.
struct ExplainedTopology {
  std::string name;
  std::string gpu;                  // Model of its GPUs; empty: as in the topology.
  std::string hosts;                // Number of hosts; empty: those of the topology.
  std::uint32_t nvlink_domain = 0;  // Hosts of an NVLink domain; 0: as in the topology.
};

// Properties that predictions need.
struct KnownTopology {
  CallModel model;    // Times of calls.
  Machine machine;    // Cost model, for the choice of a compression format.
  std::string links;  // Links in the format of src/communicator/autotuning/machine_name.h; empty: several hosts.
};

// Fills in the problem of the query, its thread blocks and whether it uses a network. If the query has a number of
// ranks, it must be that of the topology. Fails with invalid_argument if the topology is unknown or has no GPUs, or if
// the model of the GPUs is unknown.
Result<KnownTopology> explain_on(const ExplainedTopology& topology, Query& query);

}  // namespace tutti::tool
