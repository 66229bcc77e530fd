// A send or recv in progress. Its lane is created without waiting, at the first message between the two ranks, so that
// operations of a group never block each other.
#pragma once

#include <optional>

#include "src/communicator/host/host_communicator.h"

namespace tutti {

// Messages of one group may have different time limits.
struct MessageTerms {
  std::uint16_t tag = 0;
  std::int64_t timeout_ms = 0;
};

class MessageOperation final : public Operation {
 public:
  MessageOperation(HostCommunicator& owner, const Call& call, const MessageTerms& terms);

  Result<bool> advance() override;
  Status wait() override;

 private:
  Result<bool> go_on();
  Result<bool> open();
  Status disagree() const;

  HostCommunicator& owner_;
  Call call_;
  LaneSpec spec_;
  HostCommunicator::Turns& turns_;
  std::uint64_t turn_;
  BackendMemory memory_;
  WaitState wait_state_;
  std::int64_t timeout_ms_;
  std::unique_ptr<CompiledPlan> compiled_;
  Launch launch_;
  std::optional<Interpreter<CpuBackend>> interpreter_;  // Set once the lane is connected.
};

}  // namespace tutti
