// An ncclComm_t is the address of a slot in a table that lives as long as the process. So a stale or garbage handle
// is recognised without being dereferenced. The child of a fork has a table of its own, in which the parent's
// handles are invalid.
#pragma once

#include <cstddef>
#include <memory>

#include "src/nccl/abi.h"

namespace tutti::nccl {

class Communicator;
// Shared because any thread may abort and so end a communicator while others are in calls of it: the last one that lets
// go of it destroys it.
using Shared = std::shared_ptr<Communicator>;

// Maximum number in a process, equal to that of communicators of tutti.h.
inline constexpr std::size_t kMaxCommunicators = 4096;

// Null if the table is full.
ncclComm_t admit(Shared communicator);
// Null unless the handle is one that admit() gave and retire() has not taken.
Shared find(const ncclComm* handle);
// Takes the communicator out, so that nobody finds it any more. Null as above.
Shared retire(ncclComm_t handle);
// The same, if it is this one: the slot may have gone on to another.
void retire(ncclComm_t handle, const Communicator& expected);

}  // namespace tutti::nccl
