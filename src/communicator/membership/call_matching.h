// Comparison of this rank's collectives with those of the other ranks. All ranks must make the same calls in the same
// order; a difference fails the communicator with a message that shows both calls.
#pragma once

#include "src/communicator/membership/current_call.h"
#include "src/communicator/membership/failures.h"
#include "src/communicator/membership/notifications.h"

namespace tutti {

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
  // Called after all ranks have left. Ranks of other hosts reported their last calls when they left. Ranks that only
  // send to each other detect here that their calls differed.
  Status compare_last() const;

 private:
  Membership& membership_;
  const CurrentCall& current_;
  Notifications& notifications_;
  Failures& failures_;
};

}  // namespace tutti
