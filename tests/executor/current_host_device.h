// The GPU emulator as the calling thread's current device, for programs that link it instead of the CUDA device.
#pragma once

#include "tests/executor/device_rig.h"

namespace tutti::test {

DeviceRig& current_host_rig();
HostDevice& current_host_device();

}  // namespace tutti::test
