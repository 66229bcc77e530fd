// A position in the order of a communicator's calls, after all earlier calls, in streams or not. While a ticket exists,
// blocking calls take one too.
#pragma once

#include <memory>
#include <utility>

#include "src/api/comm_handle.h"

namespace tutti {

class Ticket {
 public:
  explicit Ticket(std::shared_ptr<SharedComm> shared) : shared_(std::move(shared)) {
    shared_->queued.fetch_add(1, std::memory_order_acq_rel);
    ticket_ = shared_->communicator->take_ticket();
  }
  Ticket(Ticket&& other) noexcept = default;
  Ticket& operator=(Ticket&& other) noexcept = delete;
  ~Ticket() { end(); }

  SharedComm* shared() const { return shared_.get(); }

  // Waits until all earlier calls are complete.
  void await() const { shared_->communicator->await_ticket(ticket_); }

  // Allows the next ticket to proceed.
  void end() {
    const auto shared = std::exchange(shared_, nullptr);
    if (shared == nullptr) return;
    // Without this wait, a later call could overtake an earlier one.
    shared->communicator->await_ticket(ticket_);
    shared->communicator->finish_ticket();
    shared->queued.fetch_sub(1, std::memory_order_acq_rel);
  }

 private:
  std::shared_ptr<SharedComm> shared_;
  std::uint64_t ticket_ = 0;
};

}  // namespace tutti
