// A place in the order of a communicator's calls, behind all that it was given before, through streams or not. While
// one is held, blocking calls line up as well.
#pragma once

#include <memory>
#include <utility>

#include "src/api/door.h"

namespace tutti {

class Turn {
 public:
  explicit Turn(std::shared_ptr<Membership> membership) : membership_(std::move(membership)) {
    membership_->queued.fetch_add(1, std::memory_order_acq_rel);
    ticket_ = membership_->communicator->take_ticket();
  }
  Turn(Turn&& other) noexcept = default;
  Turn& operator=(Turn&& other) noexcept = delete;
  ~Turn() { end(); }

  Membership* membership() const { return membership_.get(); }

  // Until the calls before it are done.
  Status await() const { return membership_->communicator->await_ticket(ticket_); }

  // Lets the next one go.
  void end() {
    const auto membership = std::exchange(membership_, nullptr);
    if (membership == nullptr) return;
    (void)membership->communicator->await_ticket(ticket_);  // Who leaves the line early would take another's place.
    membership->communicator->finish_ticket();
    membership->queued.fetch_sub(1, std::memory_order_acq_rel);
  }

 private:
  std::shared_ptr<Membership> membership_;
  std::uint64_t ticket_ = 0;
};

}  // namespace tutti
