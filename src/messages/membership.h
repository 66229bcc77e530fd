// A rank and its communicator, as the messages of the rank see them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/handshake.h"
#include "transports/tcp/stream.h"

namespace tutti {

// Any thread may call the functions, also while the communicator runs calls. They must not call the endpoint. Only the
// service thread calls `address` and `report_address`, which may wait for threads that use the control connections.
struct MessageMembership {
  Rank rank = 0, ranks = 1;
  std::string name;  // For messages, such as " on gradients".
  Credentials credentials;
  Protection protection = Protection::none;  // Protection of links to ranks of other hosts.
  std::function<bool(Rank)> is_remote;
  // Returns where a rank accepts links; nullopt if that is not known yet.
  std::function<Result<std::optional<SocketAddress>>(Rank)> address;
  // Reports to ranks of other hosts where this rank accepts links. Returns false while the report is not sent
  // completely; call it again then. Null: nothing to report.
  std::function<bool()> report_address;
  // Returns the failure of the communicator. Checks whether a peer has died.
  std::function<Status()> failure;
  std::function<Status(Status)> fail;  // Fails the communicator, and returns the failure that all ranks report.
  std::function<bool(Rank)> has_left;  // Whether a rank has finalized the communicator.
};

}  // namespace tutti
