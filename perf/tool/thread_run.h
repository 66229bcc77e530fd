// One thread's run: the ranks that it drives, warm-up, timing, checks. Threads communicate only through Tutti.
#pragma once

#include "perf/tool/collective.h"
#include "perf/tool/options.h"
#include "perf/tool/pin.h"

namespace perf {

// `threads`: a communicator on host memory of all threads, which this function destroys. `pinned`: the core of the
// thread. The thread of rank 0 prints. Returns false if results are wrong.
bool run_thread(const Collective& collective, const Options& options, tutti_comm threads, const Pinned& pinned);

}  // namespace perf
