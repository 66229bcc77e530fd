#include "src/communicator/peers/lane_budget.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "src/base/pages.h"
#include "src/communicator/peers/rank_device_memory.h"
#include "transports/half_lane.h"
#include "transports/lay_lane.h"

namespace tutti {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kRemoteBytes = 128 * 1024 * kKiB;  // For a rank's lanes from and to other hosts.
constexpr std::size_t kSmallProtocols = 2;

// Sizes of slots, and the number of channels below which the next size is used instead.
struct SlotChoice {
  SlotSizes slots;
  std::uint32_t min_channels;
};
constexpr std::array kChoices = {
    SlotChoice{{.simple = 64 * kKiB, .ll = 8 * kKiB}, 2}, SlotChoice{{.simple = 32 * kKiB, .ll = 8 * kKiB}, 2},
    SlotChoice{{.simple = 16 * kKiB, .ll = 4 * kKiB}, 1}, SlotChoice{{.simple = 8 * kKiB, .ll = 2 * kKiB}, 1},
    SlotChoice{{.simple = 4 * kKiB, .ll = 1 * kKiB}, 1}};

// With fewer peers, lanes are as fast as the staging ring.
constexpr Rank kMinRingPeers = 2;
// So many channels keep the links busy while others copy (docs/design/gpu-data-path.md).
constexpr StagingRing kLargeRing = {.channels = 48, .positions = 4};

// Peers of a rank, and the memory for their lanes.
struct LaneRoom {
  LanePeers peers;
  std::size_t rank_bytes;
  std::uint32_t max_channels;

  bool holds(const LaneBudget& budget) const {
    return peers.local * budget.lanes_bytes() <= rank_bytes && peers.remote * 2 * budget.remote_bytes() <= kRemoteBytes;
  }
};

// Returns the budget with the most channels that fits, or with one channel.
LaneBudget budget_with(const SlotSizes& slots, const LaneRoom& room) {
  LaneBudget budget{.slots = slots, .channels = room.max_channels};
  while (budget.channels > 1 && !room.holds(budget)) --budget.channels;
  return budget;
}

}  // namespace

LanePeers peers_in(const Hosts& hosts) {
  std::map<Rank, Rank> ranks_of;  // By first rank of the host.
  for (const Rank first : hosts.first_ranks()) ++ranks_of[first];
  LanePeers peers;
  for (const auto& [first, ranks] : ranks_of) {
    peers.local = std::max(peers.local, ranks - 1);
    peers.remote = std::max(peers.remote, hosts.ranks() - ranks);
  }
  return peers;
}

LaneBudget budget_for(const LanePeers& peers, std::size_t page_bytes, LaneLimit limit) {
  const bool slow = peers.remote > 0 || limit == LaneLimit::in_host_memory;
  const LaneRoom room = {peers, limit == LaneLimit::large ? kLargeLaneBytes : kSmallLaneBytes,
                         slow ? kMaxSlowChannels : kMaxLaneChannels};
  LaneBudget budget;
  for (const SlotChoice& choice : kChoices) {
    budget = budget_with(choice.slots, room);
    if (budget.channels >= choice.min_channels && room.holds(budget)) break;
  }
  budget.bytes = round_up(budget.lanes_bytes(), page_bytes);
  if (!slow && peers.local >= kMinRingPeers) budget.ring = limit == LaneLimit::large ? kLargeRing : kSmallRing;
  return budget;
}

// Lanes of every protocol and flags of each tag, lanes for messages, and flags of calls in windows on all their
// channels.
std::size_t LaneBudget::lanes_bytes() const {
  const auto room = [](const LaneSpec& spec) { return round_up(kControlBytes + slots_bytes(spec), kWordsBytes); };
  const auto lane = [&](Protocol protocol) { return room(spec_of({.peer = 1}, 0, protocol, kLaneSlotsInHost, slots)); };
  const std::size_t lanes = lane(Protocol::simple) + kSmallProtocols * lane(Protocol::ll);
  const std::size_t messages = std::min(channels, kMaxMessageChannels) * room(message_spec(0, 1, 0, slots));
  const std::size_t flags = kMaxChannels * kMaxLaneTags * kControlBytes;
  return round_up(channels * kMaxLaneTags * (lanes + kControlBytes) + messages + flags, kPageBytes);
}

std::size_t LaneBudget::remote_bytes() const {
  return remote_lanes() * round_up(HalfLane::memory_bytes(message_spec(0, 1, 0, slots)), kPageBytes);
}

std::size_t LaneBudget::remote_slots_bytes() const {
  return remote_lanes() * round_up(HalfLane::slots_bytes(message_spec(0, 1, 0, slots)), kPageBytes);
}

// Counts targets only: every lane that a rank reads is written by a peer.
std::uint32_t tags_of(const std::vector<Plan>& plans) {
  std::size_t max = 0;
  for (const Plan& plan : plans) {
    std::map<Rank, std::set<std::uint16_t>> tags;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (const Operand& operand : plan.steps[s].targets) {
        if (!operand.is_memory()) tags[operand.peer].insert(operand.tag);
      }
    }
    for (const auto& [peer, own] : tags) max = std::max(max, own.size());
  }
  return static_cast<std::uint32_t>(max);
}

}  // namespace tutti
