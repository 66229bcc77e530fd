// Check of the messages that a rank sends to itself in a group.
#pragma once

#include <utility>
#include <vector>

#include "src/communicator/communicator.h"

namespace tutti {

using MadeCall = std::pair<const Communicator*, const Call*>;

// Checks that each message to self has its recv in the group, before the next collective of its communicator. Otherwise
// the send and the recv would wait for each other.
Status check_messages_to_self(const std::vector<MadeCall>& calls);

}  // namespace tutti
