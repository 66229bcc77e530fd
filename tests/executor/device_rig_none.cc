// A build without CUDA has no GPU to test.
#include "tests/executor/device_rig.h"

namespace tutti::test {

std::unique_ptr<DeviceRig> cuda_rig() { return nullptr; }

}  // namespace tutti::test
