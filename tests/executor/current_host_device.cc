#include "tests/executor/current_host_device.h"

namespace tutti::test {

DeviceRig& current_rig() {
  static DeviceRig& rig = *host_rig({.thread_blocks = 64}).release();
  return rig;
}

HostDevice& current_host_device() { return static_cast<HostDevice&>(current_rig().device()); }

std::string device_usage() {
  const HostDeviceUsage usage = current_host_device().usage();
  const EmulatorMemory::Usage memory = current_host_device().taken_or_kept();
  std::string text;
  for (const std::uint64_t each : {memory.allocations, memory.bytes, usage.host_allocations, usage.host_allocated_bytes,
                                   usage.mappings, usage.mapped_bytes, usage.opened, usage.events, usage.streams})
    text += std::to_string(each) + " ";
  return text;
}

}  // namespace tutti::test

namespace tutti {

Result<std::shared_ptr<Device>> find_device(int ordinal) {
  if (ordinal > 0)
    return invalid_argument("invalid CUDA device " + std::to_string(ordinal) + "; valid devices are 0 to 0");
  return std::shared_ptr<Device>(&test::current_host_device(), [](Device*) {});
}

Result<int> current_device() { return 0; }

}  // namespace tutti
