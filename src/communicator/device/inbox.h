// Lanes between two ranks of different processes. They lie in memory that the reader has taken and the writer has
// opened; both lay those of collectives out one after the other, in the order in which their calls need them. That is
// the same order, for matching calls, so neither has to tell the other. Those of messages have fixed places.
#pragma once

#include <map>

#include "transports/transport.h"

namespace tutti {

// Channels of messages, apart from those of collectives, which may be in flight beside them.
inline constexpr std::uint16_t kMessageChannel = 0x4000;
inline constexpr std::uint32_t kMostMessageChannels = 4;

class Inbox {
 public:
  // `memory`: zeroed, of the device that calls it so; null: none.
  Inbox() = default;
  Inbox(std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  // Fails when there is no room left.
  Result<LanePair> lane(const LaneSpec& spec);

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t used_ = 0;      // From the front, by collectives,
  std::size_t reserved_ = 0;  // and from the back, by messages.
  std::map<LaneSpec, LanePair> lanes_;
};

}  // namespace tutti
