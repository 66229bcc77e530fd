// Creates ranks from a launcher, forked processes or threads.
#pragma once

#include "perf/tool/collective.h"
#include "perf/tool/options.h"

namespace perf {

// Runs the tool. Returns the exit status of the program: 0, 1 for wrong results, 2 for a failure.
int launch(const Collective& collective, Options options);

}  // namespace perf
