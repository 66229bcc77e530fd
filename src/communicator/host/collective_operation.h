// A collective under way, step by step and without waiting: its lanes come to be, the peers say where their buffers
// are, the interpreter runs.
#pragma once

#include <optional>

#include "src/communicator/control/remote_access.h"
#include "src/communicator/host/host_communicator.h"

namespace tutti {

class CollectiveOperation final : public Operation {
 public:
  CollectiveOperation(HostCommunicator& owner, HostCommunicator::Prepared& prepared, const Call& call,
                      const CommunicatorOptions& options);

  Result<bool> advance() override;
  Status wait() override { return owner_.wait_for(awaited_, wait_state_); }
  // Until it is done, alone in its thread.
  Status complete();

 private:
  Result<bool> go_on();
  // Goes on to the interpreter; false while it waits for a peer.
  Result<bool> get_ready();

  HostCommunicator& owner_;
  HostCommunicator::Prepared& prepared_;          // As announced.
  HostCommunicator::Prepared* chosen_ = nullptr;  // It, or its mapped variant.
  HostCommunicator::WaitState wait_state_;
  Call call_;
  AskedRounding rounding_;
  std::optional<RemoteAccess> remote_access_;  // Set for a mapped variant.
  Rank awaited_ = 0;
  bool ready_ = false;
};

}  // namespace tutti
