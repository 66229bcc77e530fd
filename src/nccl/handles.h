// Handles of communicators.
#pragma once

#include <memory>
#include <utility>

#include "src/base/handle_table.h"
#include "src/nccl/abi.h"

namespace tutti::nccl {

class Communicator;
// Shared, because any thread may abort a communicator while others are in its calls. The last owner destroys it.
using Shared = std::shared_ptr<Communicator>;
using Handles = HandleTable<Shared, HandleKind::nccl_communicator>;

// Returns null unless `handle` is valid.
inline Shared find(const ncclComm* handle) { return held(Handles::instance(), handle); }
// Invalidates `handle`. Returns its communicator, or null if it was invalid.
inline Shared retire(const ncclComm* handle) {
  const std::unique_ptr<Shared> removed = Handles::instance().remove(handle);
  return removed == nullptr ? nullptr : std::move(*removed);
}

}  // namespace tutti::nccl
