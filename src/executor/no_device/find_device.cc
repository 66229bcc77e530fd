// Substitute in builds without CUDA.
#include "src/executor/thread_block/device.h"

namespace tutti {

namespace {

Status no_device() {
  return unsupported(
      "this library was built without CUDA: build it with nvcc installed, and check that CMake prints 'CUDA on', or "
      "use host memory");
}

}  // namespace

Result<std::shared_ptr<Device>> find_device(int) { return no_device(); }

Result<int> current_device() { return no_device(); }

}  // namespace tutti
