// Runs several calls in one thread. Messages start at once; collectives of one communicator run one after the other;
// different communicators run concurrently. One thread can therefore drive several ranks.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/communicator.h"

namespace tutti {

struct GroupedCall {
  Communicator* communicator = nullptr;
  Call call;
  CommunicatorOptions options;
};

// Runs all calls. If a call fails, its communicator skips the remaining calls, and fails permanently if it had several.
// Returns the first error after all calls have ended. Blocks with bounded waits. Does not throw.
Status run_group(const std::vector<GroupedCall>& calls);

// Reports to the peers that calls of a group will not be made, since peers may wait for them. Does not throw.
void call_off(Communicator& communicator, const Status& reason);

}  // namespace tutti
