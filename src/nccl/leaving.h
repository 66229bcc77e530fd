// How communicators end. tutti_comm_destroy waits until all ranks do the same, but programs destroy their communicators
// one after the other, in any order, and expect no wait. So each leaves in a thread of its own, for which the end of
// the process waits: a peer may still need what this rank has sent.
#pragma once

#include <thread>

#include "tutti/tutti.h"

namespace tutti::nccl {

struct Leaver {
  tutti_comm comm = nullptr;
  tutti_stream stream = nullptr;  // Of the communicator alone.
  std::thread job;                // The last that worked for it.
};

// Returns at once. Never fails: where the system gives no thread, the communicator is aborted and ended here.
void leave(Leaver leaver);

}  // namespace tutti::nccl
