// Memory of devices that this process's programs have asked for.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Any thread.
class DeviceMemory {
 public:
  static DeviceMemory& of_process();

  // Allocates on the calling thread's current device.
  Result<std::byte*> allocate(std::size_t bytes);
  // False if no memory of a device begins there. May wait for the device, or leave it for later: see
  // deferred_device_frees.h.
  bool free(std::byte* memory);

 private:
  std::mutex mutex_;
  std::map<std::byte*, std::shared_ptr<Device>> owners_;
};

}  // namespace tutti
