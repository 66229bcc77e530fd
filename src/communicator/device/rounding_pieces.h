// Memory of a device for what calls ask of rounding beyond the format: a piece for each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/communicator/neighbours/home.h"
#include "src/executor/team/narrow_rounding.h"

namespace tutti {

// A thread at a time.
class RoundingPieces {
 public:
  // What a call asks, then by channel how often a graph has run it.
  static constexpr std::size_t kBytes = sizeof(TeamRounding) + kMostChannels * sizeof(std::uint32_t);

  // Until so many are there; may wait for the device.
  Status provide(DeviceHome& home, std::size_t count);
  // With what was in it. Of those, or of the device's memory if none is left.
  Result<std::byte*> take(DeviceHome& home);

 private:
  std::vector<std::byte*> ready_;
};

}  // namespace tutti
