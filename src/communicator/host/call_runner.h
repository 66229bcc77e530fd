// Runs prepared calls. The thread that runs a call waits in it; CollectiveOperation runs calls beside others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/communicator/call/run_statistics.h"
#include "src/communicator/host/call_preparer.h"
#include "src/communicator/host/mapped_buffers.h"
#include "src/communicator/host/prepared_call.h"
#include "src/communicator/membership/waiter.h"

namespace tutti {

struct Dither;

class CallRunner {
 public:
  // All arguments must outlive this object.
  CallRunner(ControlPlane& control, Waiter& waiter, HostCallPreparer& preparer, RunStatistics& statistics)
      : control_(control),
        membership_(control.membership),
        waiter_(waiter),
        preparer_(preparer),
        statistics_(statistics),
        buffers_(control) {}

  // Runs a call to its end.
  Status run(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);
  // Like run(), for calls with brief_run_of(). Not inlined: if compiled into each caller, the loop over the moves would
  // not be inlined into it.
  [[gnu::noinline]] Status run_brief(PreparedCall& prepared, PlanRun& run, const Call& call,
                                     const CommunicatorOptions& options);

 private:
  friend class AutotunedCall;
  friend class CollectiveOperation;

  // Numbers the call, and makes it the current one.
  void begin(PreparedCall& prepared, const CommunicatorOptions& options) {
    control_.current.begin(prepared.record, options.timeout_ms);
    waiter_.begin_call();
  }
  // Passes the buffers to the interpreter. `record` is the call as peers see it. Fails if there is no memory for copies
  // of the buffers.
  Status bind_buffers(const CallRecord& record, PlanRun& run, const Call& call, const RequestedRounding& requested);
  // Like bind_buffers(), but throws if there is no memory.
  void bind(const CallRecord& record, PlanRun& run, const Call& call, const RequestedRounding& requested);
  // Runs a call over lanes that are connected.
  Status run_at_once(PreparedCall& prepared, PlanRun& run, const Call& call, const CommunicatorOptions& options);
  // Runs the plan to its end. Its buffers must be bound, and its record must have been announced.
  Status complete(PlanRun& run);
  Status wait_and_advance(PlanRun& run, Progress progress);
  // Prepares a compressed call after its buffers are known, before it runs.
  void bind_rounding(std::uint64_t sequence, PlanRun& run, const Call& call, const RequestedRounding& requested);
  // Replaces an input that has a residual by a copy that includes the residual and is already rounded.
  void apply_residual(PlanRun& run, const Call& call, const Dither* dither);
  std::byte* room_for_copy(std::uint64_t bytes);

  ControlPlane& control_;
  Membership& membership_;
  Waiter& waiter_;
  HostCallPreparer& preparer_;
  RunStatistics& statistics_;
  MappedBuffers buffers_;
  std::vector<std::byte> scratch_, input_copy_;
};

}  // namespace tutti
