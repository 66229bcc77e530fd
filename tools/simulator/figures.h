// Cost parameters (costs.h) of kinds of machines, one set for each generation of GPUs. Costs of NCCL's kernels and of
// links are fitted to published measurements or taken from published constants. docs/design/simulator.md describes
// their accuracy and how to fit them.
#pragma once

#include "tools/simulator/costs.h"

namespace tutti::simulator {

// Library whose kernels run on GPUs. Costs of links, networks and launches are the same for both.
enum class Kernels : std::uint8_t { tutti, nccl };

// Returns the costs of the topology's GPUs, by compute capability or the next older known one. Tutti's kernels have the
// same costs on all GPUs (src/model/gpu_kernel.h). Without GPUs, returns the costs of the host's processors. Fails with
// invalid_argument if GPUs differ or their model is unknown.
Result<Costs> costs_of(const Topology& topology, Kernels kernels);

}  // namespace tutti::simulator
