// Memory of other processes that a device of this one has opened. Each may be opened once only, whatever the number of
// ranks here, so that its users are counted.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Any thread, with the device current.
class ForeignMemory {
 public:
  cudaError_t open(const DeviceHandle& handle, std::byte*& memory);
  void close(std::byte* memory);

 private:
  struct Opened {
    std::byte* memory = nullptr;
    std::size_t users = 0;
  };
  std::mutex mutex_;
  std::map<DeviceHandle, Opened> opened_;
};

}  // namespace tutti
