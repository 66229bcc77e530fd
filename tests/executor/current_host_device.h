// The GPU emulator as the calling thread's current device, for programs that link it instead of the CUDA device.
#pragma once

#include "tests/executor/current_rig.h"

namespace tutti::test {

HostDevice& current_host_device();

}  // namespace tutti::test
