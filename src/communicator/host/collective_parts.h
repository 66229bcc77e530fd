// The classes that prepare and run the collectives of one rank, in the order of their dependencies.
#pragma once

#include "src/communicator/host/autotuning_exchange.h"
#include "src/communicator/host/call_planner.h"
#include "src/communicator/host/call_runner.h"
#include "src/communicator/host/mapped_buffers.h"
#include "src/communicator/host/prepared_calls.h"
#include "src/communicator/host/run_statistics.h"

namespace tutti {

// Each member uses only members above it.
struct CollectiveParts {
  CollectiveParts(ControlPlane& control_plane, Waiter& waiting) : control(control_plane), waiter(waiting) {}

  ControlPlane& control;
  Waiter& waiter;
  RunStatistics statistics;
  CallPlanner planner{control.membership};
  MappedBuffers buffers{control};
  CallRunner runner{control, waiter, statistics};
  PreparedCalls calls{control.membership, planner, statistics};
  AutotuningExchange exchange{control.membership, calls};
};

}  // namespace tutti
