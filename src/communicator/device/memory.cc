#include "src/communicator/device/memory.h"

namespace tutti {

DeviceMemory& DeviceMemory::of_process() {
  static DeviceMemory& memory = *new DeviceMemory;  // Programs free theirs as late as they like.
  return memory;
}

Result<std::byte*> DeviceMemory::allocate(std::size_t bytes) {
  std::shared_ptr<Device> device = TUTTI_TRY(find_device());
  std::byte* memory = TUTTI_TRY(device->allocate(bytes));
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
  device->free(memory);
  return true;
}

}  // namespace tutti
