// The messages of an all_to_all_v.
#pragma once

#include <vector>

#include "src/communicator/call/call.h"

namespace tutti {

// Returns the sends and receives of an all_to_all_v of rank `self`. Each rank begins with a different peer.
std::vector<Call> messages_of(const Call& call, Rank self);

}  // namespace tutti
