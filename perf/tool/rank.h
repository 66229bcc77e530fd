// One rank's run: buffers, warm-up, timing, checks. Ranks talk to each other through Tutti alone.
#pragma once

#include <string>

#include "perf/tool/collective.h"
#include "perf/tool/options.h"
#include "perf/tool/report.h"

namespace perf {

// The part of one rank, from a communicator that it owns to the end of the run. Rank 0 prints. False: wrong results.
bool run_rank(const Collective& collective, const Options& options, tutti_comm comm, int core);

// Binds the calling thread to the index-th of the cores that it may use; returns which, or -1 if it could not.
int pin(int index);

}  // namespace perf
