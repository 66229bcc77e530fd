#include "src/nccl/handles.h"

#include <cstdint>
#include <mutex>
#include <utility>

namespace tutti::nccl {

// Of its own cache line, as the communicator is: ranks that are threads use theirs at the same time.
struct alignas(64) ncclComm {
  std::mutex mutex;
  Shared communicator;
};

namespace {

constexpr std::size_t kSlots = 4096;  // As many as there can be communicators of tutti.h.

// Never destroyed: threads may look while the process ends.
ncclComm* slots() {
  static ncclComm* const table = new ncclComm[kSlots];
  return table;
}

ncclComm* slot_of(const ncclComm* handle) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(slots());
  if (offset >= kSlots * sizeof(ncclComm) || offset % sizeof(ncclComm) != 0) return nullptr;
  return &slots()[offset / sizeof(ncclComm)];
}

}  // namespace

ncclComm_t admit(Shared communicator) {
  static std::mutex mutex;
  static std::size_t next = 0;  // Goes round, so that a stale handle stays stale for long.
  const std::lock_guard lock(mutex);
  for (std::size_t tries = 0; tries < kSlots; ++tries) {
    ncclComm& slot = slots()[next++ % kSlots];
    const std::lock_guard slot_lock(slot.mutex);
    if (slot.communicator != nullptr) continue;
    slot.communicator = std::move(communicator);
    return &slot;
  }
  return nullptr;
}

Shared find(const ncclComm* handle) {
  ncclComm* slot = slot_of(handle);
  if (slot == nullptr) return nullptr;
  const std::lock_guard lock(slot->mutex);
  return slot->communicator;
}

Shared retire(ncclComm_t handle) {
  ncclComm* slot = slot_of(handle);
  if (slot == nullptr) return nullptr;
  const std::lock_guard lock(slot->mutex);
  return std::exchange(slot->communicator, nullptr);
}

}  // namespace tutti::nccl
