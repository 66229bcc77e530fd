// Messages between two ranks: send, recv, and all_to_all_v, which is a send and a recv for each pair of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "src/communicator/host/message_operation.h"

namespace tutti {

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
