// Runs the calls of a rank on host memory, in the caller's thread. It delegates collectives to HostCollectives, and
// messages between two ranks to PointToPoint; both wait through Waiter.
#pragma once

#include <memory>

#include "src/communicator/call/backend.h"
#include "src/communicator/host/host_collectives.h"
#include "src/communicator/host/point_to_point.h"
#include "src/communicator/waiting/control_plane.h"
#include "src/communicator/waiting/waiter.h"

namespace tutti {

class HostBackend final : public BlockingBackend {
 public:
  // `control` must outlive this object.
  explicit HostBackend(ControlPlane& control) : control_(control) {}

  Status run(const Call& call, const CommunicatorOptions& options) override;
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions& options) override;
  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override {
    return collectives_.predict_us(call, options);
  }
  LastRun last_run() const override { return collectives_.last_run(); }
  CompressionStatistics compression_statistics() const override { return collectives_.compression_statistics(); }

  Status failure() override { return control_.failures.found("outside of any call"); }
  void wait_for_remote_access() override { control_.failures.wait_for_remote_access(); }
  Status finish() override;
  Status await_leaving() override;

 private:
  Status run_and_report(const Call& call, const CommunicatorOptions& options);
  Status run_between_hosts(const Call& call, const CommunicatorOptions& options);
  Status run_unprepared(const Call& call, const CommunicatorOptions& options);

  ControlPlane& control_;
  Waiter waiter_{control_};
  HostCollectives collectives_{control_, waiter_};
  PointToPoint messages_{control_, waiter_};
};

}  // namespace tutti
