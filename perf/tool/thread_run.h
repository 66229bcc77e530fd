// One thread's run: the ranks that it drives, warm-up, timing, checks. Threads talk to each other through Tutti alone.
#pragma once

#include "perf/tool/collective.h"
#include "perf/tool/options.h"
#include "perf/tool/pin.h"

namespace perf {

// `threads`: a communicator on host memory of all threads that run, which it ends. `pinned`: the core of the thread.
// The thread of rank 0 prints. False: wrong results.
bool run_thread(const Collective& collective, const Options& options, tutti_comm threads, const Pinned& pinned);

}  // namespace perf
