// Calls that run together in one thread: messages at once, collectives of a communicator one after the other, and
// different communicators beside each other, so that one thread can drive several ranks.
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

// Runs all; a communicator whose call fails runs no more of them, and if there were more it fails for good. Returns the
// first failure when all are done or failed. Blocks, with bounded waits. Throws nothing.
Status run_group(const std::vector<GroupedCall>& calls);

// Tells the peers, who may be waiting for them, that calls of a group will not be made. Throws nothing.
void call_off(Communicator& communicator, const Status& reason);

// Advances each once and takes those that are done out; true if there were any.
Result<bool> advance_all(std::vector<std::unique_ptr<Operation>>& operations);
// Advances all operations in turn until all are done.
Status drive(std::vector<std::unique_ptr<Operation>>& operations);

}  // namespace tutti
