// A place in the order of a communicator's calls, behind all that it was given before, through streams or not. While
// one is held, blocking calls line up as well.
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

  // Until the calls before it are done.
  Status await() const { return shared_->communicator->await_ticket(ticket_); }

  // Lets the next one go.
  void end() {
    const auto shared = std::exchange(shared_, nullptr);
    if (shared == nullptr) return;
    (void)shared->communicator->await_ticket(
        ticket_);  // Ending out of turn would let a later call pass an earlier one.
    shared->communicator->finish_ticket();
    shared->queued.fetch_sub(1, std::memory_order_acq_rel);
  }

 private:
  std::shared_ptr<SharedComm> shared_;
  std::uint64_t ticket_ = 0;
};

}  // namespace tutti
