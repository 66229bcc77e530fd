// A collective in progress, advanced step by step without waiting: connects lanes, exchanges buffer addresses, and runs
// the interpreter.
#pragma once

#include <optional>

#include "src/communicator/call/operation.h"
#include "src/communicator/control/remote_access.h"
#include "src/communicator/host/collective_parts.h"

namespace tutti {

class CollectiveOperation final : public Operation {
 public:
  // Begins and announces the call. `prepared` must serve it until the operation is done.
  CollectiveOperation(CollectiveParts& parts, PreparedCall& prepared, const Call& call,
                      const CommunicatorOptions& options);

  Result<bool> advance() override;
  Status wait() override {
    wait_state_.watches_board = !ready_;
    return parts_.waiter.wait_for(awaited_, wait_state_);
  }
  // Runs until the collective is done. For a thread that drives no other operation.
  Status complete();

 private:
  Result<bool> go_on();
  // Prepares the interpreter. Returns false while it waits for a peer.
  Result<bool> get_ready();

  CollectiveParts& parts_;
  PreparedCall& prepared_;          // The call as announced.
  PreparedCall* chosen_ = nullptr;  // `prepared_` or its mapped variant.
  WaitState wait_state_;
  Call call_;
  RequestedRounding rounding_;
  std::optional<RemoteAccess> remote_access_;  // Set for the mapped variant.
  Rank awaited_ = 0;
  bool ready_ = false;
};

}  // namespace tutti
