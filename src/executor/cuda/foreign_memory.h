// Memory of other processes opened by a device of this process. CUDA allows one mapping per process, so the users are
// counted.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Thread-safe. The device must be current.
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
