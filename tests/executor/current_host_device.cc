#include "tests/executor/current_host_device.h"

namespace tutti::test {

// The device is never destroyed, like a GPU.
DeviceRig& current_host_rig() {
  static DeviceRig& rig = *host_rig({.thread_blocks = 64}).release();
  return rig;
}

HostDevice& current_host_device() { return static_cast<HostDevice&>(current_host_rig().device()); }

}  // namespace tutti::test

namespace tutti {

Result<std::shared_ptr<Device>> find_device(int ordinal) {
  if (ordinal > 0) return invalid_argument("there is no device " + std::to_string(ordinal));
  return std::shared_ptr<Device>(&test::current_host_device(), [](Device*) {});
}

Result<int> current_device() { return 0; }

}  // namespace tutti
