// Sizes of lanes in allocations that cannot grow: everything that a plan may request fits, so that no call fails
// for lack of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/base/pages.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/plan/plan.h"

namespace tutti {

// Channels of messages, apart from those of collectives, which may be in flight beside them.
inline constexpr std::uint16_t kMessageChannel = 0x4000;
inline constexpr std::uint32_t kMaxMessageChannels = 4;
inline constexpr std::uint32_t kMaxLaneChannels = 8;
// Lanes from one rank to another that a plan may have, on each channel.
inline constexpr std::uint32_t kMaxLaneTags = 2;

struct LaneBudget {
  SlotSizes slots = {.simple = 64 * 1024, .ll = 8 * 1024};  // Words with their flags take twice their data.
  std::uint32_t channels = kMaxLaneChannels;                // Most with lanes of their own.
  std::size_t bytes = 0;                                    // From one rank to another, whole pages; 0: as they come.

  // The same where their hosts differ: of large messages alone, with tags of algorithms that know hosts beside those of
  // algorithms that do not.
  std::size_t remote_bytes() const;
  std::size_t remote_slots_bytes() const;  // Bytes of these slots, which may lie apart.

 private:
  std::size_t remote_lanes() const { return 2 * kMaxLaneTags * channels + std::min(channels, kMaxMessageChannels); }
};

// The same on all ranks, but for the bytes where hosts have pages of different sizes: devices are shown whole ones of
// their host's. Fails if the ranks are too many.
Result<LaneBudget> budget_for(Rank ranks, std::size_t page_bytes = mapped_page_bytes());

// The most tags that the lanes and flags from one rank to another have.
std::uint32_t tags_of(const std::vector<Plan>& plans);

}  // namespace tutti
