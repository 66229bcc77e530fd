// Cost parameters (costs.h) of kinds of machines, one set for each generation of GPUs. They are fitted to published
// measurements or taken from published constants. docs/design/simulator.md describes their accuracy and how to fit
// them.
#pragma once

#include "tools/simulator/costs.h"

namespace tutti::simulator {

// Returns the costs of the topology's GPUs, by compute capability or the next older known one. Without GPUs, returns
// the costs of the host's processors. Fails with invalid_argument if GPUs differ or their model is unknown.
Result<Costs> costs_of(const Topology& topology);

}  // namespace tutti::simulator
