// One of several processes of a run: its ranks, each in a thread, and how it receives the id by which they join.
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

// Options of a communicator, with the strings of `options`, which must outlive them.
class CommOptions {
 public:
  // Sets the timeout and the transport.
  explicit CommOptions(const Options& options);
  CommOptions(const CommOptions&) = delete;
  CommOptions& operator=(const CommOptions&) = delete;

  // Also sets the choices that --algorithm, --protocol, --channels and the options of compression force.
  void force(const Options& options);

  tutti_comm_options general = TUTTI_COMM_OPTIONS_DEFAULT;
  tutti_tuning_options tuning = TUTTI_TUNING_OPTIONS_DEFAULT;
};

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
