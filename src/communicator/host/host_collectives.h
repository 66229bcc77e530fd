// Collectives of one rank on host memory: prepares a call when its shape is new, and runs it. Messages between two
// ranks are left to PointToPoint.
#pragma once

#include <memory>

#include "src/communicator/call/operation.h"
#include "src/communicator/host/collective_parts.h"

namespace tutti {

// Only the thread that runs calls may use it, except last_run() and compression_statistics().
class HostCollectives {
 public:
  HostCollectives(ControlPlane& control, Waiter& waiter) : parts_(control, waiter) {}

  // Returns the prepared call if the call has the shape of the previous one and consists of moves; otherwise null.
  PreparedCall* brief_for(const Call& call, const CommunicatorOptions& options) const {
    PreparedCall* const latest = parts_.calls.latest();
    const bool serves = latest != nullptr && !latest->moves.empty() && call.kind == Kind::collective &&
                        latest->serves(call, options.forced);
    return serves ? latest : nullptr;
  }
  // Runs a call for which brief_for() returned `prepared`.
  Status run_brief(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options) {
    return parts_.runner.run_brief(prepared, call, options);
  }

  // Runs the call in this thread. Failures are not reported to the peers; the caller must do that.
  Status run(const Call& call, const CommunicatorOptions& options);
  // Starts the call; the caller drives it.
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions& options);
  // Prepares the call, so that the next call of its shape uses the result. Does not wait.
  Result<PreparedCall*> prepare(const Call& call, const CommunicatorOptions& options) {
    return parts_.calls.prepare(call, options);
  }

  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) {
    return parts_.planner.predict_us(call, options);
  }
  LastRun last_run() const { return parts_.statistics.last_run(); }
  CompressionStatistics compression_statistics() const;
  // Saves the results of autotuning to the tune file.
  void save_tuning() { parts_.calls.autotuning().write(); }

 private:
  Status run_prepared(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);
  Status run_autotuned(const Call& call, const CommunicatorOptions& options);
  Status run_internal(const InternalCollective& internal);

  CollectiveParts parts_;
};

}  // namespace tutti
