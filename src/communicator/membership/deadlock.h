// Detects ranks of one host that wait for each other: one in a send or recv, the others in a collective that it has not
// called. Without this, all of them would wait until the timeout.
#pragma once

#include <cstdint>
#include <vector>

#include "src/communicator/control/wait_record.h"
#include "src/communicator/membership/control_plane.h"

namespace tutti {

class DeadlockDetection {
 public:
  explicit DeadlockDetection(ControlPlane& control);

  // Shows the other ranks of the host, and ranks of other hosts that have asked, that this rank waits for `peer`.
  // `began_ns` identifies the wait.
  void show_wait(Rank peer, std::int64_t began_ns) const;
  // Fails if this rank is in a send or recv that cannot end, because ranks wait for each other in a cycle. Must be
  // called repeatedly during the wait, after polls for its data.
  Status check(std::int64_t began_ns);

 private:
  struct PeerWait {
    Rank rank = 0;
    Wait wait;
    CallRecord call;
  };
  std::vector<PeerWait> waits_for_this_rank() const;

  const Membership& membership_;
  const CurrentCall& current_;
  Notifications& notifications_;
  Failures& failures_;
  struct {
    std::int64_t message_began_ns = 0;  // Identifies this rank's wait.
    std::vector<PeerWait> waits;
  } seen_;  // State when check() first saw these waits.
};

}  // namespace tutti
