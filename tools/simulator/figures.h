// Costs (costs.h) of kinds of machines: physical figures, one set for each generation of GPUs, fitted to published
// measurements or taken from published constants. docs/design/simulator.md has their accuracy, and how to fit them.
#pragma once

#include "tools/simulator/costs.h"

namespace tutti::simulator {

// Of its GPUs by their compute capability, of the next older one that is known; of the host's processors without any.
// invalid_argument where GPUs are not all alike, or nobody said what they are.
Result<Costs> costs_of(const Topology& topology);

}  // namespace tutti::simulator
