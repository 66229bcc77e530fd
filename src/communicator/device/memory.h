// Device memory that the program allocated through the API.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Thread-safe.
class DeviceMemory {
 public:
  static DeviceMemory& of_process();

  // Allocates on the calling thread's current device, by the driver's virtual memory management if that can export
  // files.
  Result<std::byte*> allocate(std::size_t bytes);
  // Returns false if `memory` is not the start of an allocation. The free may wait for the device, or be deferred: see
  // peers/deferred_frees.h.
  bool free(std::byte* memory);

 private:
  std::mutex mutex_;
  std::map<std::byte*, std::shared_ptr<Device>> owners_;
};

}  // namespace tutti
