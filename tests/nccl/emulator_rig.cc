// The GPU emulator for tests of libnccl.so.2.
#include "tests/executor/current_host_device.h"
#include "tests/nccl/device_buffers.h"

namespace tutti::test {

DeviceRig& current_rig() { return current_host_rig(); }

std::string device_usage() {
  const HostDeviceUsage usage = current_host_device().usage();
  std::string text;
  for (const std::uint64_t each :
       {usage.allocations, usage.allocated_bytes, usage.host_allocations, usage.host_allocated_bytes, usage.mappings,
        usage.mapped_bytes, usage.opened, usage.events, usage.streams})
    text += std::to_string(each) + " ";
  return text;
}

}  // namespace tutti::test
