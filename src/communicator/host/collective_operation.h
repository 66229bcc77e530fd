// A collective in progress, advanced step by step without waiting: connects lanes, exchanges buffer addresses, and runs
// the interpreter.
#pragma once

#include <memory>
#include <optional>

#include "src/communicator/call/operation.h"
#include "src/communicator/control/remote_access.h"
#include "src/communicator/host/call_runner.h"

namespace tutti {

class CollectiveOperation final : public Operation {
 public:
  // Begins and announces the call. `prepared` must serve it until the operation is done.
  CollectiveOperation(CallRunner& runner, PreparedCall& prepared, const Call& call, const CommunicatorOptions& options);

  Result<bool> advance() override;
  Status wait() override {
    wait_state_.watches_board = !ready_;
    return runner_.waiter_.wait_for(awaited_, wait_state_);
  }
  // Runs until the collective is done. For a thread that drives no other operation.
  Status complete();

 private:
  Result<bool> go_on();
  // Chooses the run, and prepares its interpreter. Returns false while it waits for a peer.
  Result<bool> get_ready();
  Result<bool> choose_run();

  CallRunner& runner_;
  PreparedCall& prepared_;  // The call as announced.
  PlanRun* run_ = nullptr;  // Chosen among those of `prepared_`. Null: not chosen yet, or the call has no data.
  WaitState wait_state_;
  const Call call_;
  const RequestedRounding rounding_;
  std::optional<RemoteAccess> remote_access_;  // Set while the plan runs in mapped memory.
  Rank awaited_ = 0;
  bool ready_ = false;
};

}  // namespace tutti
