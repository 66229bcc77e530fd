// Runs prepared calls whose plans are connected. The thread that runs a call waits in it; CollectiveOperation runs
// calls beside others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/communicator/host/prepared_call.h"
#include "src/communicator/host/run_statistics.h"
#include "src/communicator/waiting/waiter.h"

namespace tutti {

struct Dither;

class CallRunner {
 public:
  CallRunner(ControlPlane& control, Waiter& waiter, RunStatistics& statistics);

  // Numbers the call, and makes it the current one.
  void begin(PreparedCall& prepared, const CommunicatorOptions& options) {
    current_.begin(prepared.record, options.timeout_ms);
    waiter_.begin_call();
  }
  // Passes the buffers to the interpreter of `chosen`. `announced` is the call as peers see it.
  void bind_buffers(const PreparedCall& announced, PreparedCall& chosen, const Call& call,
                    const RequestedRounding& requested);
  // Runs a call to its end. Its buffers must be bound, and its record must have been announced.
  Status complete(PreparedCall& prepared);

  // Run a whole call, for calls without a mapped variant. run_brief() requires moves.
  // Not inlined: if compiled into each caller, the loop over the moves would not be inlined into it.
  [[gnu::noinline]] Status run_brief(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);
  Status run_at_once(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);

 private:
  Status wait_and_advance(PreparedCall& prepared, Progress progress);
  // Prepares a compressed call after its buffers are known, before it runs.
  void bind_rounding(PreparedCall& prepared, const Call& call, const RequestedRounding& requested);
  // Replaces an input that has a residual by a copy that includes the residual and is already rounded.
  void correct_input(PreparedCall& prepared, const Call& call, const Dither* dither);
  std::byte* room_for_copy(std::uint64_t bytes);

  Membership& membership_;
  CurrentCall& current_;
  const CallMatching& matching_;
  Waiter& waiter_;
  RunStatistics& statistics_;
  std::vector<std::byte> scratch_, input_copy_;
};

}  // namespace tutti
