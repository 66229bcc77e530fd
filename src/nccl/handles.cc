#include "src/nccl/handles.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tutti::nccl {

// Slots have their own cache lines, because ranks in different threads use theirs at the same time.
struct alignas(64) ncclComm {
  std::mutex mutex;
  Shared communicator;
};

namespace {

constinit std::mutex admission;
constinit std::size_t next_slot = 0;  // Cyclic, so that stale handles stay invalid for long.
// Created by the first admit(). Never destroyed, because threads may read it while the process ends.
constinit std::atomic<ncclComm*> table = nullptr;

// A child leaks the parent's table, in which other threads may hold locks.
[[maybe_unused]] const int forgotten_by_children =
    ::pthread_atfork([] { admission.lock(); }, [] { admission.unlock(); },
                     [] {
                       table = nullptr;
                       admission.unlock();
                     });

ncclComm* slot_of(const ncclComm* handle) {
  ncclComm* slots = table.load(std::memory_order_acquire);
  if (slots == nullptr) return nullptr;
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(slots);
  if (offset >= kMaxCommunicators * sizeof(ncclComm) || offset % sizeof(ncclComm) != 0) return nullptr;
  return &slots[offset / sizeof(ncclComm)];
}

}  // namespace

ncclComm_t admit(Shared communicator) {
  const std::lock_guard lock(admission);
  if (table == nullptr) table = new ncclComm[kMaxCommunicators];
  for (std::size_t tries = 0; tries < kMaxCommunicators; ++tries) {
    ncclComm& slot = table[next_slot++ % kMaxCommunicators];
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

void retire(ncclComm_t handle, const Communicator& expected) {
  ncclComm* slot = slot_of(handle);
  if (slot == nullptr) return;
  Shared released;  // Destroyed after the lock is released.
  const std::lock_guard lock(slot->mutex);
  if (slot->communicator.get() == &expected) released.swap(slot->communicator);
}

}  // namespace tutti::nccl
