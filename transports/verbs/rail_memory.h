// Memory that is registered once with each device of a carrier's rails.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "transports/half_lane.h"
#include "transports/verbs/device.h"

namespace tutti {

struct RailMemory {
  LaneMemory device_memory;  // Null: host memory.
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  bool ordered = true;  // See DeviceRegion.
  // Shared, because this object may outlive the carrier.
  std::vector<std::shared_ptr<VerbsDevice>> devices;
  std::vector<MemoryRegion> regions;
  std::array<const ibv_mr*, kMaxPorts> of_rail = {};

  bool holds(const std::byte* address) const { return address >= at && address < at + bytes; }
};

// Registers `memory` with the device of every rail. `add` registers it with one device and returns
// Result<MemoryRegion>.
template <typename Add>
Status register_with_rails(RailMemory& memory, const std::vector<std::shared_ptr<VerbsDevice>>& device_of_rail,
                           const Add& add) {
  for (std::size_t rail = 0; rail < device_of_rail.size(); ++rail) {
    std::size_t same = 0;
    while (device_of_rail[same] != device_of_rail[rail]) ++same;
    if (same == rail) {
      MemoryRegion region = TUTTI_TRY(add(*device_of_rail[rail]));
      memory.devices.push_back(device_of_rail[rail]);
      memory.of_rail[rail] = region.get();
      memory.regions.push_back(std::move(region));
    } else {
      memory.of_rail[rail] = memory.of_rail[same];
    }
  }
  return {};
}

}  // namespace tutti
