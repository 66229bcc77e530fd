// Memory allocation, buffer registration (validated only, see docs/design/nccl-shim.md), and window registration, by
// which peers access buffers in place.
#include <atomic>
#include <cstdint>
#include <optional>

#include "src/nccl/communicator.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

struct Buffer {
  const void* memory;
  std::size_t size;
};

Outcome check_buffer(const Buffer& buffer) {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.memory);
  if (buffer.size == 0 || (address != 0 && buffer.size <= UINTPTR_MAX - address)) return {};
  const std::string size = std::to_string(buffer.size) + " bytes";
  if (address == 0) return invalid_argument("buff is NULL but size is " + size + "; pass the address of the buffer");
  return invalid_argument("buff and " + size +
                          " extend beyond the end of memory; pass the size of the buffer in bytes");
}

// Returns a handle that is unique in the process. It is odd, so that no object of the program has this address.
void* next_handle() {
  static constinit std::atomic<std::uintptr_t> next = 1;
  return reinterpret_cast<void*>(next.fetch_add(2, std::memory_order_relaxed));
}

// Local operation, allowed while the communicator is busy.
Outcome register_buffer(const ncclComm* comm, const Buffer& buffer, void** handle) {
  if (handle == nullptr) return invalid_argument("handle is NULL; pass a pointer to a void*");
  *handle = nullptr;
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (communicator->is_closed()) {
    return invalid_argument("the communicator is finalized; register buffers earlier, or with another communicator");
  }
  TUTTI_NCCL_CHECK(check_buffer(buffer));
  *handle = next_handle();
  communicator->buffers.add(*handle, {});
  return {};
}

// A null handle is accepted: a failed registration returns it.
Outcome deregister_buffer(const ncclComm* comm, const void* handle) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (handle == nullptr || communicator->buffers.remove(handle)) return {};
  return invalid_usage(
      "handle is not registered with this communicator: pass each handle of ncclCommRegister once, with the "
      "communicator that returned it");
}

constexpr int kSymmetric = 1;       // NCCL_WIN_COLL_SYMMETRIC
constexpr int kStrictOrdering = 2;  // NCCL_WIN_STRICT_ORDERING concerns one-sided calls, which are not implemented.

struct WindowRequest {
  void* memory;
  std::size_t size;
  int flags;
  ncclWindow_t* out;
};

// Programs treat a null window as "no window", and their calls still work. With a fallback library the program gets
// that library's window, because one-sided calls and device code need it.
Outcome register_window(Communicator& communicator, const WindowRequest& request) {
  Fallback* fallback = communicator.fallback();
  ncclWindow_t handle = nullptr;
  if (fallback != nullptr) {
    TUTTI_NCCL_CHECK(fallback->register_window({request.memory, request.size, request.flags}, handle));
    if (handle == nullptr) return {};
  }
  tutti_window window = nullptr;
  const std::uint32_t flags = (request.flags & kSymmetric) != 0 ? TUTTI_WINDOW_SYMMETRIC : 0;
  Outcome made = outcome_of(tutti_window_register(request.memory, request.size, flags, communicator.comm(), &window));
  if (made.failed()) {
    if (fallback != nullptr) (void)fallback->deregister_window(handle);
    return made;
  }
  if (fallback == nullptr) handle = reinterpret_cast<ncclWindow_t>(window);
  if (handle != nullptr) communicator.windows.add(handle, {request.memory, window});
  __atomic_store_n(request.out, handle, __ATOMIC_RELEASE);
  return {};
}

Outcome begin_window(const ncclComm* comm, const WindowRequest& request) {
  if (request.out == nullptr) return invalid_argument("win is NULL; pass a pointer to an ncclWindow_t");
  *request.out = nullptr;
  if ((request.flags & ~(kSymmetric | kStrictOrdering)) != 0) {
    return invalid_argument("winFlags " + std::to_string(request.flags) +
                            " has unknown bits: pass NCCL_WIN_DEFAULT, NCCL_WIN_COLL_SYMMETRIC or "
                            "NCCL_WIN_STRICT_ORDERING");
  }
  Shared communicator;
  TUTTI_NCCL_CHECK(find_ready(comm, communicator));
  return submit(
      Job{communicator, [communicator, request] { return register_window(*communicator, request); }, nullptr});
}

// Allowed after the calls were ended, so that the program can free the memory. tutti.h then reports that the
// communicator was aborted, after it has waited for the peers to leave the memory.
Outcome end_window(const ncclComm* comm, ncclWindow_t handle) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (!communicator->has_ended_calls()) TUTTI_NCCL_CHECK(communicator->ready());
  const std::optional<UserWindow> known = communicator->windows.find(handle);
  const tutti_window window = known ? known->window : reinterpret_cast<tutti_window>(handle);
  Outcome ended = outcome_of(tutti_window_deregister(window, communicator->comm()));
  if (ended.code == ncclRemoteError && communicator->has_ended_calls()) ended = {};
  if (ended.failed() || !known) return ended;
  communicator->windows.remove(handle);
  return communicator->fallback() == nullptr ? Outcome() : communicator->fallback()->deregister_window(handle);
}

Outcome find_user_memory(const ncclComm* comm, ncclWindow_t window, void** memory) {
  if (memory == nullptr) return invalid_argument("outUserPtr is NULL; pass a pointer to a void*");
  *memory = nullptr;
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (window == nullptr)
    return invalid_argument("win is NULL; ncclCommWindowRegister returns that for memory that cannot be shared");
  const std::optional<UserWindow> found = communicator->windows.find(window);
  if (found) *memory = found->memory;
  if (found) return {};
  return invalid_argument(
      "win is not registered with this communicator: it belongs to another one, or was deregistered");
}

}  // namespace

TUTTI_NCCL_API(ncclResult_t, MemAlloc, void** memory, std::size_t size) {
  return guarded("ncclMemAlloc", [&]() -> Outcome {
    if (memory == nullptr) return invalid_argument("ptr is NULL; pass a pointer to a void*");
    TUTTI_NCCL_CHECK(check_memory());
    return allocate(memory, size);
  });
}

TUTTI_NCCL_API(ncclResult_t, MemFree, void* memory) {
  return guarded("ncclMemFree", [&] { return release(memory); });
}

TUTTI_NCCL_API(ncclResult_t, CommRegister, ncclComm_t comm, void* memory, std::size_t size, void** handle) {
  return guarded("ncclCommRegister", [&] { return register_buffer(comm, {memory, size}, handle); });
}

TUTTI_NCCL_API(ncclResult_t, CommDeregister, ncclComm_t comm, void* handle) {
  return guarded("ncclCommDeregister", [&] { return deregister_buffer(comm, handle); });
}

// Collective. A thread that drives several ranks calls it in a group.
TUTTI_NCCL_API(ncclResult_t, CommWindowRegister, ncclComm_t comm, void* memory, std::size_t size, ncclWindow_t* window,
               int flags) {
  return grouped("ncclCommWindowRegister", [&] { return begin_window(comm, {memory, size, flags, window}); });
}

TUTTI_NCCL_API(ncclResult_t, CommWindowDeregister, ncclComm_t comm, ncclWindow_t window) {
  return guarded("ncclCommWindowDeregister", [&] { return end_window(comm, window); });
}

TUTTI_NCCL_API(ncclResult_t, WinGetUserPtr, ncclComm_t comm, ncclWindow_t window, void** memory) {
  return guarded("ncclWinGetUserPtr", [&] { return find_user_memory(comm, window, memory); });
}

}  // namespace tutti::nccl
