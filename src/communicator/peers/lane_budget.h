// Sizes of lanes in allocations that cannot grow. All lanes that a plan may use fit, so that no call fails for lack of
// lane memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "src/base/pages.h"
#include "src/communicator/call/hosts.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/communicator/planning/rails.h"
#include "src/plan/plan.h"
#include "src/tuner/choose.h"

namespace tutti {

// First channel of messages. Collectives use other channels, because they may be in flight at the same time.
inline constexpr std::uint16_t kMessageChannel = 0x4000;
inline constexpr std::uint32_t kMaxMessageChannels = 4;
inline constexpr std::uint32_t kMaxLaneChannels = 24;
// Maximum with lanes to all ranks of other hosts, or in host memory. Their paths are slower than NVLink.
inline constexpr std::uint32_t kMaxSlowChannels = 8;
inline constexpr std::uint32_t kSlotsAhead = kDeviceLaneSlots;  // Slots by which loops may run ahead.
// Slots of a lane of a collective within a host. Its credits arrive at once, so plans run ahead by all of them.
inline constexpr Slots kLaneSlotsInHost = Slots::several;
static_assert(1U << slot_shift_of(kLaneSlotsInHost) == kDeviceLaneSlots);
// Maximum lanes from one rank to another that a plan has on each channel.
inline constexpr std::uint32_t kMaxLaneTags = 2;

// Memory for lanes to a rank from all peers of its host. A further communicator of a process on a device, in addition
// to one with large lanes or a large staging ring, has small ones unless its min_channels exceeds their channels on all
// ranks. Lanes in host memory are small and have at most kMaxSlowChannels channels.
enum class LaneLimit : std::uint32_t { large, small, in_host_memory };
inline constexpr std::size_t kLargeLaneBytes = 128 << 20;
inline constexpr std::size_t kSmallLaneBytes = 48 << 20;
// In further communicators, whose few lanes it replaces for large calls. Shorter positions would be slower.
inline constexpr StagingRing kSmallRing = {.channels = 24, .positions = 3, .position_bytes = 256 * 1024};

struct LaneBudget {
  // Within a host, and to partners (Rails). LL stores twice the bytes of its data.
  SlotSizes slots = {.simple = 64 * 1024, .ll = 8 * 1024};
  // To other ranks on the same rail, and to all others of other hosts. At most slots.simple and rail_slot_bytes.
  std::uint32_t rail_slot_bytes = 64 * 1024, remote_slot_bytes = 64 * 1024;
  std::uint32_t channels = kMaxLaneChannels;  // Maximum channels with lanes within a host.
  // Maximum channels between any two ranks of different hosts, and for plans with fewer peers there.
  std::uint32_t remote_channels = kMaxLaneChannels;
  RemoteChannels fewer_peers = {};
  // Channels with an LL lane to each rank of other hosts on the rail, if RemoteLanes::holds_ll(); 0: there are none.
  std::uint32_t remote_ll_channels = 0;
  // Bytes from one rank to another, a multiple of the page size; 0: lanes are allocated on demand.
  std::size_t bytes = 0;
  // Each of several ranks of a host has one, for use if NVLink connects all of them; of several hosts, only if devices
  // have multicast objects that a plan may use. A further communicator has a smaller one, or none between hosts.
  StagingRing ring = {};

  // Bytes of all lanes from one rank to another of its host.
  std::size_t lanes_bytes() const;
  SlotSizes slots_between_hosts(RemotePeers peers) const {
    if (peers == RemotePeers::partners) return slots;
    return {.simple = peers == RemotePeers::rail ? rail_slot_bytes : remote_slot_bytes, .ll = slots.ll};
  }
  // Channels of plans with lanes between any ranks.
  std::uint32_t channels_to_all() const { return std::min(channels, remote_channels); }
  // Bytes of Simple lanes from one rank to another on a different host, and of their slots alone, which may be stored
  // separately.
  std::size_t remote_bytes(RemotePeers peer) const;
  std::size_t remote_slots_bytes(RemotePeers peer) const;
  // The same for LL lanes.
  std::size_t remote_ll_bytes(RemotePeers peer) const;
  std::size_t remote_ll_slots_bytes(RemotePeers peer) const;

 private:
  std::size_t remote_lanes(RemotePeers peer) const;
  std::size_t remote_ll_lanes(RemotePeers peer) const {
    return peer == RemotePeers::all ? 0 : std::size_t{kRailTags} * remote_ll_channels;
  }
};

// Maximum numbers of peers of any rank.
struct LanePeers {
  Rank local = 0;                         // On its host.
  Rank remote = 0;                        // On other hosts, those of the rail included.
  Rank partners = 0, others_on_rail = 0;  // See Rails::partners() and others().
  bool multicast = false;                 // Devices have multicast objects, and ranks do not share them.
};
LanePeers peers_in(const Hosts& hosts, const Rails& rails);

// Returns the same budget on all ranks, except for `bytes`, which is a multiple of the host's page size. With more
// peers there are fewer channels, then smaller slots. With the smallest slots, memory grows with the number of peers.
LaneBudget budget_for(const LanePeers& peers, std::size_t page_bytes = mapped_page_bytes(),
                      LaneLimit limit = LaneLimit::large);

// Returns the maximum number of tags that lanes and flags from one rank to another have.
std::uint32_t tags_of(std::span<const Plan> plans);

}  // namespace tutti
