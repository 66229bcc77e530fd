// The control plane of one rank: all that it shares with the other ranks besides data. Classes that wait for peers, or
// prepare and run calls, use it.
#pragma once

#include <utility>

#include "src/communicator/membership/call_matching.h"
#include "src/communicator/membership/current_call.h"
#include "src/communicator/membership/failures.h"
#include "src/communicator/membership/membership.h"
#include "src/communicator/membership/notifications.h"

namespace tutti {

// Each member uses only members above it.
struct ControlPlane {
  ControlPlane(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread)
      : membership(rank, std::move(mesh), std::move(board), std::move(options), spread) {}

  Membership membership;
  CurrentCall current{membership};
  Notifications notifications{membership};
  Failures failures{membership, notifications};
  CallMatching matching{membership, current, notifications, failures};
};

}  // namespace tutti
