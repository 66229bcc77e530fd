// The current GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/executor/current_rig.h"

namespace tutti::test {

DeviceRig& current_rig() {
  static DeviceRig& rig = *cuda_rig().release();
  return rig;
}

std::string device_usage() {
  current_rig();
  std::size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
  return std::to_string(total - free) + " bytes";
}

}  // namespace tutti::test
