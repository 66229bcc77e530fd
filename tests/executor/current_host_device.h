// The GPU emulator as the calling thread's current device, for programs that link it in place of CUDA's.
#pragma once

#include "tests/executor/host_device.h"

namespace tutti::test {

HostDevice& current_host_device();

}  // namespace tutti::test
