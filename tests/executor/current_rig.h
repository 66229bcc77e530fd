// The calling thread's current device: the GPU emulator, or a GPU, as the program links.
#pragma once

#include <string>

#include "tests/executor/device_rig.h"

namespace tutti::test {

// Never destroyed.
DeviceRig& current_rig();

// Describes the memory that is allocated on the device, as its driver counts it, for comparisons.
std::string device_usage();

}  // namespace tutti::test
