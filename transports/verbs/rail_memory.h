// Memory that the devices of all rails of a carrier reach: registered once with each device.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "transports/half_lane.h"
#include "transports/verbs/device.h"

namespace tutti {

struct RailMemory {
  LaneMemory block;  // Block that a device owns; null: host memory.
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  bool ordered = true;  // See DeviceBlock.
  // It may outlive the carrier.
  std::vector<std::shared_ptr<VerbsDevice>> devices;
  std::vector<MemoryRegion> regions;
  std::array<const ibv_mr*, kMaxPorts> of_rail = {};

  bool holds(const std::byte* place) const { return place >= at && place < at + bytes; }
};

// `add`: registers it with one device, and gives Result<MemoryRegion>.
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
