// Handles of communicators. An ncclComm_t is the address of a slot in a table that exists until the process ends, so
// stale and garbage handles are detected without being dereferenced. The child of a fork has its own table, in which
// the parent's handles are invalid.
#pragma once

#include <cstddef>
#include <memory>

#include "src/nccl/abi.h"

namespace tutti::nccl {

class Communicator;
// Shared, because any thread may abort a communicator while others are in its calls. The last owner destroys it.
using Shared = std::shared_ptr<Communicator>;

// Maximum per process, the same as in tutti.h.
inline constexpr std::size_t kMaxCommunicators = 4096;

// Returns a new handle, or null if the table is full.
ncclComm_t admit(Shared communicator);
// Returns null unless `handle` is valid.
Shared find(const ncclComm* handle);
// Invalidates `handle`. Returns its communicator, or null if it was invalid.
Shared retire(ncclComm_t handle);
// Invalidates `handle` if it still denotes `expected`. The slot may be in use by another communicator.
void retire(ncclComm_t handle, const Communicator& expected);

}  // namespace tutti::nccl
