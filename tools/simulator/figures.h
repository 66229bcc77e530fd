// Costs (costs.h) of kinds of machines: physical figures, one set for each generation of GPUs, fitted to published
// measurements or taken from published constants. docs/design/simulator.md has their accuracy, and how to fit them.
#pragma once

#include "tools/simulator/costs.h"

namespace tutti::simulator {

// Cost model for the GPUs of a topology by compute capability (or the next older known one), or for the host's
// processors if there are no GPUs. invalid_argument if GPUs differ or their model is unknown.
Result<Costs> costs_of(const Topology& topology);

}  // namespace tutti::simulator
