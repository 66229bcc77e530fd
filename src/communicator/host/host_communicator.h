// Communicator of ranks whose buffers lie in host memory, on one or several hosts. It joins the parts of this module,
// collectives and messages, with those of `waiting`: membership, failures and waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/host/host_collectives.h"
#include "src/communicator/host/point_to_point.h"
#include "src/communicator/host/tagged_messages.h"
#include "src/communicator/waiting/control_plane.h"
#include "src/communicator/waiting/waiter.h"

namespace tutti {

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread);
  ~HostCommunicator() override;

  Rank rank() const override { return membership().rank; }
  Rank ranks() const override { return membership().ranks; }
  bool on_one_host() const override { return !membership().spans_hosts; }
  const Mesh* mesh() const override { return &membership().mesh; }
  const CommunicatorOptions& options() const override { return membership().options; }
  const Board& board() const override { return membership().board; }

  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override {
    return collectives_.predict_us(call, options);
  }
  LastRun last_run() const override { return collectives_.last_run(); }
  CompressionStatistics compression_statistics() const override { return collectives_.compression_statistics(); }
  void announce(CallRecord& record) override;
  void report_last_call() override { control_.notifications.report_calls(NotificationKind::call); }

  Status run(const Call& call, const CommunicatorOptions* options) override;
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options) override;

  Result<std::shared_ptr<MessageEndpoint>> messages() override { return tagged_messages_.endpoint(); }
  Result<std::unique_ptr<Communicator>> split(int color, int key, const CommunicatorOptions& options) override;
  Result<std::unique_ptr<Communicator>> shrink(const std::vector<Rank>& excluded,
                                               const CommunicatorOptions& options) override;
  Status pass(Rank to, int descriptor) override;
  Result<File> take_passed(Rank from) override;

  Status finalize() override;
  Status leave() override;
  void abort() override;
  Status fail(Status status) override { return control_.failures.fail(std::move(status)); }
  Status call_off(const Status& reason) override { return control_.failures.call_off(reason); }
  void wait_for_remote_access() override { control_.failures.wait_for_remote_access(); }
  Status failure() override { return failure("outside of any call"); }
  Status failure(const std::string& when) override { return control_.failures.found(when); }

  std::uint64_t take_ticket() override { return tickets_.fetch_add(1); }
  Status await_ticket(std::uint64_t ticket) override;
  void finish_ticket() override {
    served_.fetch_add(1);
    served_.notify_all();
  }

 private:
  const Membership& membership() const { return control_.membership; }
  Status run_and_report(const Call& call, const CommunicatorOptions& chosen);
  Status run_between_hosts(const Call& call, const CommunicatorOptions& chosen);
  Status run_unprepared(const Call& call, const CommunicatorOptions& chosen);
  // Returns the members of this rank's sub-communicator, in its order; empty if color is negative.
  Result<std::vector<Rank>> agree_on_members(int color, int key);

  ControlPlane control_;
  Waiter waiter_{control_};
  HostCollectives collectives_{control_, waiter_};
  PointToPoint messages_{control_, waiter_};
  TaggedMessages tagged_messages_{control_};
  std::uint32_t aborted_ = 0;              // 1: abort() was called since the last shrink() began.
  std::atomic<std::uint64_t> tickets_{0};  // Number of calls in streams so far; `served_` is the number that are done.
  std::atomic<std::uint64_t> served_{0};
};

}  // namespace tutti
