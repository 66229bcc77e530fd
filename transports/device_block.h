// Memory of a device in which slots of lanes are to lie, as a carrier is asked to reach it: what network cards and
// their libraries need to know of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "transports/half_lane.h"

namespace tutti {

// Memory kind of a device, as network libraries name it.
enum class MemoryKind : std::uint8_t { host, cuda };

struct DeviceBlock {
  LaneMemory memory;  // Whole pages, by the addresses that thread blocks use. The host neither reads nor writes there.
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::cuda;
  // ThreadBlocks that are told, through memory of the host, of what a network card has written there before, see it. If
  // not, the card has to read it back first.
  bool ordered = false;
  bool insisted = false;   // The user asks for it, come what may.
  int dma_buf = -1;        // Descriptor of the whole block; the caller owns it.
  std::string no_dma_buf;  // Why there is none.
  std::string name;        // Name of the device, for messages.
};

// The block, which is reached for as long as somebody holds `memory`, and how.
struct ReachedBlock {
  LaneMemory memory;
  std::string how;  // "mlx5_0 by dma-buf"
};

// For people: what was asked to reach a block, and how it does, or why not.
struct BlockWay {
  std::string by;  // "mlx5_0"
  Result<std::string> how;
};

}  // namespace tutti
