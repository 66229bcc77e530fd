// First figures for costs.h, by what a topology's ranks run on.
#pragma once

#include "src/model/costs.h"

namespace tutti {

// Of its GPUs by their compute capability, of the next older one that is known; of the host's processors without any.
// invalid_argument where GPUs are not all alike, or nobody said what they are.
Result<Costs> costs_of(const Topology& topology);

}  // namespace tutti
