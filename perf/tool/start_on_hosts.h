// A run on several hosts, started through ssh: one program for each host, which starts the processes there.
#pragma once

#include "perf/tool/options.h"

namespace perf {

// Returns the exit status of the run. Ends what it has started when it ends itself, however it does.
int start_on_hosts(const Options& options);

}  // namespace perf
