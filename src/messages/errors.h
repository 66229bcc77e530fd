// Errors of messages that name the ranks, the calls and the communicator. `name` is the communicator's, such as
// " on gradients".
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/messages/request.h"

namespace tutti {

// A message starts after this rank has begun to leave the communicator.
Status message_after_end(const std::string& name);
// The only possible peer has left; kAnyRank: all other ranks have.
Status peer_has_left(Rank peer, const std::string& name);
// This rank has left the communicator before the request was complete.
Status incomplete_at_end(const MessageCall& call, const std::string& name);
// A receive and a send match, but differ. The peer of each call is the rank of the other one.
Status calls_differ(const MessageCall& receive, const MessageCall& send, const std::string& name);

}  // namespace tutti
