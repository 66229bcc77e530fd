// The current GPU for tests of libnccl.so.2. It must have access to all host memory.
#include <cuda_runtime.h>

#include "tests/nccl/device_buffers.h"

namespace tutti::test {

DeviceRig& current_rig() {
  static DeviceRig& rig = *cuda_rig().release();
  return rig;
}

std::string device_usage() {
  current_rig();
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return std::to_string(total - free) + " bytes";
}

}  // namespace tutti::test
