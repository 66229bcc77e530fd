// Memory, and its registration. None is needed: the library serves any memory that the ranks reach.
#include "src/nccl/communicator.h"
#include "src/nccl/door.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

// Registers nothing, which clients take: the handle is null.
Outcome register_nothing(const ncclComm* comm, void** handle, const char* name) {
  if (handle == nullptr) return invalid_argument(std::string(name) + " is NULL: pass where to put it");
  if (find(comm) == nullptr) return no_communicator(comm);
  *handle = nullptr;
  return {};
}

Outcome deregister_nothing(const ncclComm* comm, const void* handle, const char* name) {
  if (find(comm) == nullptr) return no_communicator(comm);
  if (handle == nullptr) return {};
  return invalid_usage(std::string(name) + " was not registered with this communicator");
}

}  // namespace

TUTTI_NCCL_DOOR(ncclResult_t, MemAlloc, void** memory, std::size_t size) {
  return guarded("ncclMemAlloc", [&]() -> Outcome {
    if (memory == nullptr) return invalid_argument("ptr is NULL: pass where to put the address");
    TUTTI_NCCL_CHECK(check_memory());
    return allocate(memory, size);
  });
}

TUTTI_NCCL_DOOR(ncclResult_t, MemFree, void* memory) {
  return guarded("ncclMemFree", [&] { return release(memory); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommRegister, ncclComm_t comm, void*, std::size_t, void** handle) {
  return guarded("ncclCommRegister", [&] { return register_nothing(comm, handle, "handle"); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommDeregister, ncclComm_t comm, void* handle) {
  return guarded("ncclCommDeregister", [&] { return deregister_nothing(comm, handle, "handle"); });
}

// No window until there are kernels for symmetric memory: half a one would be read by device code.
TUTTI_NCCL_DOOR(ncclResult_t, CommWindowRegister, ncclComm_t comm, void*, std::size_t, ncclWindow_t* window, int) {
  return guarded("ncclCommWindowRegister",
                 [&] { return register_nothing(comm, reinterpret_cast<void**>(window), "win"); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommWindowDeregister, ncclComm_t comm, ncclWindow_t window) {
  return guarded("ncclCommWindowDeregister", [&] { return deregister_nothing(comm, window, "win"); });
}

}  // namespace tutti::nccl
