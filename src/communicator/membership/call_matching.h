// Comparison of this rank's collectives with those of the other ranks. All ranks must make the same calls in the same
// order; a difference fails the communicator with a message that shows both calls.
#pragma once

#include <cstdint>

#include "src/communicator/membership/current_call.h"
#include "src/communicator/membership/failures.h"
#include "src/communicator/membership/notifications.h"

namespace tutti {

enum class ComparedPeers : std::uint8_t { all, on_other_hosts };

class CallMatching {
 public:
  CallMatching(Membership& membership, const CurrentCall& current, Notifications& notifications, Failures& failures)
      : membership_(membership), current_(current), notifications_(notifications), failures_(failures) {}

  // Fails if the record of a peer shows that its call differs from the running one.
  Status compare() const;
  // Returns the failure for a peer whose record differs from the running call.
  Status mismatch(Rank peer, const CallRecord& theirs) const;
  // Returns the failure after data from `peer` had the signature of another call. Waits a moment for the peer's record.
  Status mismatch_with(Rank peer) const;
  // Returns the first difference between recent calls of this rank and of these peers, as far as the board has them.
  // Ranks that only send to each other detect here that their calls differed. Does not fail the communicator.
  // Thread-safe.
  Status compare_recent(ComparedPeers peers) const;

 private:
  Membership& membership_;
  const CurrentCall& current_;
  Notifications& notifications_;
  Failures& failures_;
};

}  // namespace tutti
