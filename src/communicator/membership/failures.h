// Failure of a communicator: finding it, publishing it to all ranks, and the wait for peers after it. The first failure
// wins, and all ranks report it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "src/base/caught.h"
#include "src/communicator/membership/notifications.h"

namespace tutti {

// Thread-safe.
class Failures {
 public:
  Failures(Membership& membership, Notifications& notifications)
      : membership_(membership), notifications_(notifications) {}

  // Fails the communicator on all ranks. Returns the failure that all ranks report.
  Status fail(Status status);
  // Like fail(), for calls of a group that will not be made. This rank reports `reason`, the others report this rank.
  Status call_off(const Status& reason);
  // Reports a failure of this rank to all ranks, since they would wait for it. A rejected call is no failure of the
  // communicator: returns its status unchanged. Returns an earlier failure if there is one, since it may be the cause.
  Status reported(Status status);
  // Returns what the function returns. Reports a failure or an exception to all ranks like reported().
  template <typename Function>
  auto guarded(Function&& function) {
    auto result = caught(function);
    return result.ok() ? std::move(result) : decltype(result)(reported(std::move(result).status()));
  }
  // Fails the communicator because this rank ends it.
  void abort();
  // Names a word that aborts the communicator when it becomes nonzero. Waits look at it. Null: none.
  void watch_abort(const std::uint32_t* word) { abort_.store(word, std::memory_order_relaxed); }
  // Aborts the communicator if the word says so.
  void check_abort();

  // Returns the failure of the communicator, or ok. Also checks whether a peer has died; `when` describes the time of
  // the check.
  Status found(const std::string& when);
  // Like found(), but does not report the death of a peer to the other ranks; the caller must do that.
  Status found_unpublished(const std::string& when);

  // Describes the death of a peer.
  Status death(Rank peer, const std::string& when) const;

  // See Communicator::wait_for_remote_access().
  void wait_for_remote_access();

 private:
  // Returns the failure that all ranks report, once it is published. Returns `own` if that takes too long.
  Status published(Status own);

  Membership& membership_;
  Notifications& notifications_;
  std::atomic<const std::uint32_t*> abort_{nullptr};
};

}  // namespace tutti
