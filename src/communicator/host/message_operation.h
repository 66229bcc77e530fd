// A send or recv in progress. Its lane is created without waiting, at the first message between the two ranks, so that
// operations of a group never block each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "src/communicator/call/call.h"
#include "src/communicator/call/operation.h"
#include "src/communicator/waiting/waiter.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/backend.h"

namespace tutti {

// Separate the messages of the user from those of an all_to_all_v.
inline constexpr std::uint16_t kUserTag = 0;
inline constexpr std::uint16_t kAllToAllTag = 1;

// Order of the messages in one lane, at one of its ends.
struct MessageOrder {
  std::uint64_t taken = 0;   // Messages begun so far.
  std::uint64_t served = 0;  // Messages done so far.
};

// Messages of one group may have different time limits.
struct MessageTerms {
  std::uint16_t tag = kUserTag;
  std::int64_t timeout_ms = 0;
};

// Returns the lane of a send or recv of rank `self`.
LaneSpec lane_of_message(const Call& call, Rank self, std::uint16_t tag);

class MessageOperation final : public Operation {
 public:
  // `order` is that of the message's lane, and must outlive the operation. The message takes the next place in it.
  MessageOperation(ControlPlane& control, Waiter& waiter, MessageOrder& order, const Call& call,
                   const MessageTerms& terms);

  Result<bool> advance() override;
  Status wait() override;

 private:
  Result<bool> go_on();
  Result<bool> open();
  Status disagree() const;

  ControlPlane& control_;
  Waiter& waiter_;
  MessageOrder& order_;
  Call call_;
  LaneSpec spec_;
  std::uint64_t place_;
  std::int64_t timeout_ms_;
  BackendMemory memory_;
  WaitState wait_state_;
  std::unique_ptr<CompiledPlan> compiled_;
  Launch launch_;
  std::optional<Interpreter<CpuBackend>> interpreter_;  // Set once the lane is connected.
};

}  // namespace tutti
