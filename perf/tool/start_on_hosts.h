// A run on several hosts, started through ssh: one program for each host, which starts the processes there.
#pragma once

#include "perf/tool/options.h"

namespace perf {

// Returns the exit status of the run. The programs on all hosts end with this process, even after SIGKILL.
int start_on_hosts(const Options& options);

}  // namespace perf
