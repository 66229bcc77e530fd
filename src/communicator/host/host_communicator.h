// Communicator of ranks whose buffers lie in host memory, on one or several hosts. Its functions are in create.cc,
// split.cc, shrink.cc, prepare.cc, execute.cc (running), autotune.cc, rounding.cc and point_to_point.cc.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/host/autotuning.h"
#include "src/communicator/host/call_planner.h"
#include "src/communicator/host/control_plane.h"
#include "src/communicator/host/mapped_buffers.h"
#include "src/communicator/host/prepared_call.h"
#include "src/communicator/host/waiter.h"

namespace tutti {

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread);
  ~HostCommunicator() override;

  Rank rank() const override { return membership_.rank; }
  Rank ranks() const override { return membership_.ranks; }
  bool on_one_host() const override { return !membership_.spans_hosts; }
  const Mesh* mesh() const override { return &membership_.mesh; }
  const CommunicatorOptions& options() const override { return membership_.options; }
  const Board& board() const override { return membership_.board; }
  void announce(CallRecord& record) override {
    control_.current.number(record);
    membership_.board.announce(membership_.rank, record);
  }

  Result<double> predict_us(const Call& call, const CommunicatorOptions& options) override {
    return planner_.predict_us(call, options);
  }
  void report_last_call() override { control_.notifications.report_calls(NotificationKind::call); }
  LastRun last_run() const override;
  CompressionStatistics compression_statistics() const override {
    return compression_counter_.of(membership_.board.last(membership_.rank));
  }

  Status run(const Call& call, const CommunicatorOptions* options) override;
  Result<std::unique_ptr<Operation>> start(const Call& call, const CommunicatorOptions* options) override;
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
  friend class CollectiveOperation;
  friend class AutotuningOperation;
  friend class MessageOperation;

  // ---- prepare.cc ----
  Result<PreparedCall*> prepare_call(const Call& call, const CommunicatorOptions& options);
  void show_ran(const PreparedCall& prepared);

  // ---- execute.cc ----
  Status run_between_hosts(const Call& call, const CommunicatorOptions& options);
  // Runs the call. Reports a failure to all ranks.
  Status run_and_report(const Call& call, const CommunicatorOptions& options);
  Status run_collective(const Call& call, const CommunicatorOptions& options);
  Status run_prepared(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);
  Result<std::unique_ptr<Operation>> start_collective(const Call& call, const CommunicatorOptions& options);
  // Makes `prepared` the next collective of this rank. announce() then publishes it to the peers.
  void begin(PreparedCall& prepared, const CommunicatorOptions& options);
  void announce(PreparedCall& prepared, const Call& call);
  // Passes the buffers to the interpreter. `announced` is the call as peers see it.
  void bind_buffers(const PreparedCall& announced, PreparedCall& chosen, const Call& call,
                    const RequestedRounding& requested);
  Status run_at_once(PreparedCall& prepared, const Call& call, const RequestedRounding& requested);
  // Not inlined: if compiled into each caller, the loop over the moves would not be inlined into it.
  [[gnu::noinline]] Status run_brief(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);
  Status complete(PreparedCall& prepared);
  Status wait_and_advance(PreparedCall& prepared, Progress progress);

  // ---- rounding.cc ----
  // Prepares a compressed call after its buffers are known, before it runs.
  void bind_rounding(PreparedCall& prepared, const Call& call, const RequestedRounding& requested);
  // Replaces an input that has a residual by a copy that includes the residual and is already rounded.
  void correct_input(PreparedCall& prepared, const Call& call, const Dither* dither);

  // ---- autotune.cc ----
  // Internal collective beside a call of the user. Error messages describe it as the user's call.
  struct InternalCollective {
    Call call;
    CommunicatorOptions options;
    CallRecord record;
  };
  // Class whose stage of autotuning has ended with a call; `tuning` is null if none has ended.
  struct Ended {
    Autotuning::Class* tuned = nullptr;
    Autotuning::TuningClass* tuning = nullptr;
  };
  bool autotunes(const Call& call, const CommunicatorOptions& options) const;
  Result<std::unique_ptr<PreparedCall>> prepare_autotuning(const Call& call, const CommunicatorOptions& options);
  Result<PreparedCall*> next_tried(std::unique_ptr<PreparedCall>& slot, const Call& call,
                                   const CommunicatorOptions& options);
  Status run_autotuning(const Call& call, const CommunicatorOptions& options);
  InternalCollective recalling(const Call& call, const CommunicatorOptions& options);
  InternalCollective summing(const Call& call, const CommunicatorOptions& options, const Ended& ended,
                             std::vector<std::uint64_t>& sums_ns) const;
  Result<PreparedCall*> prepare_internal(const InternalCollective& internal);
  void conclude(const Ended& ended, const std::vector<std::uint64_t>& sums_ns);

  std::byte* scratch(std::uint64_t bytes);
  std::byte* copy_of(const std::byte* input, std::uint64_t bytes);
  std::byte* room_for_copy(std::uint64_t bytes);

  // ---- split.cc ----
  // Sub-communicator that a split creates.
  struct Part {
    std::vector<Rank> members;  // By rank in this communicator.
    Deadline deadline;
    std::optional<Mesh> mesh;
  };
  // Returns the members of this rank's sub-communicator, in its order; empty if color is negative.
  Result<std::vector<Rank>> agree_on_members(int color, int key);
  Result<ReceivedFrame> await_passed(Rank peer, FrameKind kind, const Deadline& deadline);
  Result<ReceivedFrame> await_in_part(Part& part, Rank from, FrameKind kind);
  Status exchange_contacts(const Part& part, std::vector<Contact>& contacts);
  Result<std::unique_ptr<Communicator>> make_part(Part& part, const CommunicatorOptions& options);
  std::string during_split() const;

  // ---- point_to_point.cc ----
  // Order of the messages in one lane.
  struct Turns {
    std::uint64_t taken = 0;
    std::uint64_t served = 0;
  };
  Result<std::unique_ptr<Operation>> start_messages(const Call& call, std::int64_t timeout_ms);
  void announce_unequal(const Call& call, std::int64_t timeout_ms);
  // Called after all ranks have left. Fails if a message that this rank sent, or that was sent to it, was not received.
  Status find_lost_messages();

  ControlPlane control_;
  Membership& membership_;
  Waiter waiter_{control_};
  CallPlanner planner_{membership_};
  MappedBuffers buffers_{control_};
  std::uint32_t aborted_ = 0;  // 1: abort() was called since the last shrink() began.
  CallRecord unequal_record_;  // Record of the running all_to_all_v.
  std::array<std::unique_ptr<PreparedCall>, 256> calls_;
  PreparedCall* latest_ = nullptr;
  Autotuning autotuning_;
  std::atomic<Rounding> ran_rounding_{Rounding::nearest};
  // Plan of the last call. Read by any thread, since plans do not change.
  std::atomic<const ConnectedPlan*> ran_{nullptr};
  CompressionCounter compression_counter_;
  std::vector<std::byte> scratch_, input_copy_;
  std::map<std::pair<LaneSpec, bool>, Turns> turns_;  // By lane, and by whether this rank sends on it.
  std::atomic<std::uint64_t> tickets_{0};  // Number of calls in streams so far; `served_` is the number that are done.
  std::atomic<std::uint64_t> served_{0};
};

}  // namespace tutti
