// Where ranks come from: a launcher, processes that we fork, or threads.
#pragma once

#include "perf/tool/collective.h"
#include "perf/tool/options.h"

namespace perf {

// Runs the whole tool; returns the program's exit status: 0, 1 for wrong results, 2 for a failure.
int launch(const Collective& collective, Options options);

}  // namespace perf
