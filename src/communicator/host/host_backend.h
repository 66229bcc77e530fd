// Runs the calls of a rank on host memory, in the caller's thread: prepares a call when its shape is new, and runs it.
// Messages between two ranks are left to PointToPoint. All calls wait through Waiter.
#pragma once

#include <memory>

#include "src/communicator/call/backend.h"
#include "src/communicator/host/call_preparer.h"
#include "src/communicator/host/call_runner.h"
#include "src/communicator/host/point_to_point.h"
#include "src/communicator/membership/control_plane.h"
#include "src/communicator/membership/waiter.h"
#include "src/communicator/planning/call_cache.h"

namespace tutti {

class HostBackend final : public BlockingBackend {
 public:
  // `control` must outlive this object.
  explicit HostBackend(ControlPlane& control) : control_(control) {}

  Status run(const Call& call, const CommunicatorOptions& options) override;
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions& options) override;
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override {
    return preparer_.predict_us(call, options);
  }
  LastRun last_run() const override { return statistics_.last_run(); }
  CompressionStatistics compression_statistics() const override {
    return statistics_.compression(control_.membership.board.last(control_.membership.rank));
  }

  Status failure() override { return control_.failures.found("outside of any call"); }
  void wait_for_remote_access() override { control_.failures.wait_for_remote_access(); }
  Status finish() override;
  Status await_leaving() override;

  // Returns the prepared call of a collective, with the candidate that is tried next if it is autotuned. Does not wait.
  // The pointer is valid until the next call of this function.
  struct Found {
    PreparedCall* prepared = nullptr;
    HostAutotuning::Class* tuned = nullptr;  // Null: the call is not autotuned.
  };
  Result<Found> prepare(const Call& call, const CommunicatorOptions& options);
  HostAutotuning& autotuning() { return preparer_.autotuning(); }

 private:
  void show(const PreparedCall& prepared, const CommunicatorOptions& options);
  Status run_and_report(const Call& call, const CommunicatorOptions& options);
  Status run_between_hosts(const Call& call, const CommunicatorOptions& options);
  Status run_collective(const Call& call, const CommunicatorOptions& options);
  Status run_messages(const Call& call, const CommunicatorOptions& options);
  Result<std::unique_ptr<Operation>> start_collective(const Call& call, const CommunicatorOptions& options);

  ControlPlane& control_;
  Waiter waiter_{control_};
  RunStatistics statistics_;
  HostCallPreparer preparer_{control_.membership};
  CallCache<HostCallPreparer> prepared_{preparer_};
  PreparedCall* latest_ = nullptr;  // The call that was prepared last; null: none, or it is autotuned.
  CallRunner runner_{control_, waiter_, preparer_, statistics_};
  PointToPoint messages_{control_, waiter_};
};

}  // namespace tutti
