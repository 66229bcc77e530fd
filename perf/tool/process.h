// One of several processes of a run: its ranks, each in a thread, and how it autotunes by which id they join.
#pragma once

#include <cstdint>
#include <functional>

#include "perf/tool/collective.h"
#include "perf/tool/options.h"
#include "tutti/tutti.h"

namespace perf {

struct Process {
  int number = 0;
  int here = 0;   // The same among those of this host.
  int count = 1;  // Processes on all hosts.
  int count_here = 1;
};

tutti_comm_options comm_options(const Options& options);

// Runs `count` ranks from `first` on, each in a thread; the first in the caller's.
void run_threads(std::uint32_t count, int first, const std::function<void(int rank)>& run);

// Brings process 0's id to the others.
tutti_unique_id make_id();
tutti_unique_id receive_id(int descriptor);
void send_id(int descriptor, const tutti_unique_id& id);

// Returns the exit status: 0, or 1 for wrong results.
int run_process(const Collective& collective, const Options& options, const Process& process,
                const tutti_unique_id& id);

}  // namespace perf
