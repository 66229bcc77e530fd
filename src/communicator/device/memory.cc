#include "src/communicator/device/memory.h"

#include <pthread.h>

#include "src/communicator/peers/deferred_frees.h"

namespace tutti {

// Never destroyed, because programs may free memory at any time. fork() takes the lock, because its child, which frees
// memory as well, must find it released.
DeviceMemory& DeviceMemory::of_process() {
  static DeviceMemory& memory = []() -> DeviceMemory& {
    static auto* made = new DeviceMemory;
    const auto unlock = [] { made->mutex_.unlock(); };
    ::pthread_atfork([] { made->mutex_.lock(); }, unlock, unlock);
    return *made;
  }();
  return memory;
}

namespace {

// Created when the library is loaded. A fork() during the first use would leave the child waiting for it to end.
[[maybe_unused]] const DeviceMemory& made_at_load = DeviceMemory::of_process();

}  // namespace

Result<std::byte*> DeviceMemory::allocate(std::size_t bytes) {
  std::shared_ptr<Device> device = TUTTI_TRY(find_device());
  std::byte* memory = TUTTI_TRY(allocate_or_free_cached(device, &Device::allocate_shared, bytes));
  const std::lock_guard lock(mutex_);
  owners_[memory] = std::move(device);
  return memory;
}

bool DeviceMemory::free(std::byte* memory) {
  std::shared_ptr<Device> device;
  {
    const std::lock_guard lock(mutex_);
    const auto found = owners_.find(memory);
    if (found == owners_.end()) return false;
    device = std::move(found->second);
    owners_.erase(found);
  }
  free_when_idle([device, memory] { device->free(memory); });
  return true;
}

}  // namespace tutti
