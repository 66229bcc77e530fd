// Device memory for slots of lanes, as described to carriers: everything that network cards and their libraries need to
// know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "transports/half_lane.h"

namespace tutti {

// Memory kind of a device, as network libraries name it.
enum class MemoryKind : std::uint8_t { host, cuda };

struct DeviceRegion {
  LaneMemory memory;  // Whole pages, at the address that thread blocks use. The host must not access them.
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::cuda;
  // True if a thread block that learns from host memory that a network card has written data also sees these data. If
  // false, the card must read the data back first.
  bool ordered = false;
  bool gpudirect_required = false;  // The user requires GPUDirect (TUTTI_GPUDIRECT=on).
  int dma_buf = -1;                 // Descriptor of the whole region; the caller owns it.
  std::string no_dma_buf;           // Reason if there is no descriptor.
  std::string name;                 // Name of the device, for messages.
};

// A registered region. It stays registered while `memory` is held.
struct RegisteredRegion {
  LaneMemory memory;
  std::string how;  // "mlx5_0 by dma-buf"
};

// Result of trying to register a region, for `tutti doctor`.
struct RegionAccess {
  std::string by;  // Device that tried it: "mlx5_0".
  // How it accesses the region, or why it cannot.
  Result<std::string> how;
};

}  // namespace tutti
