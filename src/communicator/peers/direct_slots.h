// Memory of a device for slots of lanes to other hosts, which network infos read and write: GPUDirect.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "src/base/config.h"
#include "src/executor/thread_block/device.h"
#include "transports/device_block.h"

namespace tutti {

// A carrier, or who asks on behalf of one.
using ReachBlock = std::function<Result<ReachedBlock>(const DeviceBlock&)>;

// So much of the device, which gets it back when nobody holds it any more; or why not. `wanted`: what the user says.
struct DirectSlots {
  std::size_t bytes = 0;
  GpuDirect wanted = GpuDirect::automatic;
};
Result<ReachedBlock> take_direct_slots(const std::shared_ptr<Device>& device, const DirectSlots& slots,
                                       const ReachBlock& reach);

}  // namespace tutti
