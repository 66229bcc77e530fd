// Messages between two ranks: send, recv, and all_to_all_v, which is a send and a recv for each pair of ranks. Lanes
// are created without waiting, at the first message between two ranks, so that operations of a group never block each
// other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "src/communicator/call/call.h"
#include "src/communicator/call/operation.h"
#include "src/communicator/membership/waiter.h"
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

// Only the thread that runs calls may use it.
class PointToPoint {
 public:
  PointToPoint(ControlPlane& control, Waiter& waiter) : control_(control), waiter_(waiter) {}

  // Starts a send, recv or all_to_all_v; the caller drives it. Does not wait.
  Result<std::unique_ptr<Operation>> start(const Call& call, std::int64_t timeout_ms);
  // Called after all ranks have left. Fails if a message that this rank sent, or that was sent to it, was not received.
  Status find_lost() const;

 private:
  // Shows the call to the peers like a collective. Each pair of ranks checks its own counts.
  void announce_unequal(const Call& call, std::int64_t timeout_ms);
  std::unique_ptr<Operation> message(const Call& call, const MessageTerms& terms);

  ControlPlane& control_;
  Waiter& waiter_;
  std::map<std::pair<LaneSpec, bool>, MessageOrder> orders_;  // By lane, and by whether this rank sends on it.
  CallRecord unequal_record_;                                 // Record of the running all_to_all_v.
};

}  // namespace tutti
