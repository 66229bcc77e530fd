// main() of tests that need a GPU: without one they are skipped with a message.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "src/executor/thread_block/device.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Kernels that wait for each other in separate streams need as many queues. CUDA reads this variable when it starts.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  auto device = tutti::find_device();
  if (!device.ok()) {
    std::printf("skipped: %s\n", std::move(device).status().message().c_str());
    return 77;
  }
  const tutti::DeviceTraits& traits = device.value()->traits();
  std::printf("on %s: %u thread blocks of %u bytes\n", traits.name.c_str(), traits.thread_blocks,
              traits.thread_block_bytes);
  return RUN_ALL_TESTS();
}
