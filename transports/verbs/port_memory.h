// Memory that is registered once with each device of a carrier's ports.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "transports/half_lane.h"
#include "transports/verbs/device.h"

namespace tutti {

struct PortMemory {
  LaneMemory device_memory;  // Null: host memory.
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  bool ordered = true;  // See DeviceRegion.
  // Shared, because this object may outlive the carrier.
  std::vector<std::shared_ptr<VerbsDevice>> devices;
  std::vector<MemoryRegion> regions;
  std::array<const ibv_mr*, kMaxPorts> of_port = {};

  bool holds(const std::byte* address) const { return address >= at && address < at + bytes; }
};

// Registers `memory` with the device of every port. `add` registers it with one device and returns
// Result<MemoryRegion>.
template <typename Add>
Status register_with_ports(PortMemory& memory, const std::vector<std::shared_ptr<VerbsDevice>>& device_of_port,
                           const Add& add) {
  for (std::size_t port = 0; port < device_of_port.size(); ++port) {
    std::size_t same = 0;
    while (device_of_port[same] != device_of_port[port]) ++same;
    if (same == port) {
      MemoryRegion region = TUTTI_TRY(add(*device_of_port[port]));
      memory.devices.push_back(device_of_port[port]);
      memory.of_port[port] = region.get();
      memory.regions.push_back(std::move(region));
    } else {
      memory.of_port[port] = memory.of_port[same];
    }
  }
  return {};
}

}  // namespace tutti
