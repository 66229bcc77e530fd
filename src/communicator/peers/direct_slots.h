// Device memory for slots of lanes to other hosts, which network cards read and write directly (GPUDirect).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "src/base/config.h"
#include "src/executor/thread_block/device.h"
#include "transports/device_region.h"

namespace tutti {

// Registers a region with a carrier, as Carrier::register_device_memory() does, or reports whether that is possible.
using RegisterRegion = std::function<Result<RegisteredRegion>(const DeviceRegion&)>;

// `bytes`: size of the slots. `wanted`: setting of the user.
struct DirectSlots {
  std::size_t bytes = 0;
  GpuDirect wanted = GpuDirect::automatic;
};
// Allocates slots on the device and registers them through `register_region`. Fails if GPUDirect is off or not
// possible, with the reason. The memory returns to the device when the last holder of the result releases it.
Result<RegisteredRegion> take_direct_slots(const std::shared_ptr<Device>& device, const DirectSlots& slots,
                                           const RegisterRegion& register_region);

}  // namespace tutti
