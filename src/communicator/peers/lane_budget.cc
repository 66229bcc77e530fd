#include "src/communicator/peers/lane_budget.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "src/base/pages.h"
#include "src/communicator/peers/rank_device_memory.h"
#include "transports/half_lane.h"
#include "transports/lay_lane.h"

namespace tutti {
namespace {

constexpr std::size_t kKiB = 1024;
// For a rank's lanes from and to other hosts: to all ranks, and in addition to partners and to others on the rail. A
// further communicator of a process on a device has half of it.
constexpr std::size_t kRemoteBytes = 96 * 1024 * kKiB;
constexpr std::size_t kPartnerBytes = 256 * 1024 * kKiB;
constexpr std::size_t kRailBytes = 256 * 1024 * kKiB;
// For LL lanes of a rank from and to other hosts; a further communicator has as much. More channels than
// kMaxRemoteLlChannels are not faster, since a proxy sends a message per microsecond.
constexpr std::size_t kRemoteLlBytes = 64 * 1024 * kKiB;
constexpr std::uint32_t kMaxRemoteLlChannels = 16;
// Sizes of slots along a rail, and the number of channels below which the next size is used instead. Messages of less
// than about 50 KiB do not fill a port (docs/design/gpu-predictions.md).
constexpr std::array kRailChoices = {std::pair(64 * kKiB, 4U), std::pair(32 * kKiB, 6U), std::pair(16 * kKiB, 4U),
                                     std::pair(8 * kKiB, 4U), std::pair(4 * kKiB, 1U)};
constexpr std::size_t kSmallProtocols = 2;

// Sizes of slots, and the number of channels below which the next size is used instead.
struct SlotChoice {
  SlotSizes slots;
  std::uint32_t min_channels;
};
// A step of a thread block takes several microseconds, whatever its length, so that few peers have slots that amortize
// them. Only large lanes of a single host have these.
constexpr std::array kLargeChoices = {SlotChoice{{.simple = 256 * kKiB, .ll = 8 * kKiB}, kMaxLaneChannels},
                                      SlotChoice{{.simple = 128 * kKiB, .ll = 8 * kKiB}, kMaxLaneChannels}};
constexpr std::array kChoices = {
    SlotChoice{{.simple = 64 * kKiB, .ll = 8 * kKiB}, 2}, SlotChoice{{.simple = 32 * kKiB, .ll = 8 * kKiB}, 2},
    SlotChoice{{.simple = 16 * kKiB, .ll = 4 * kKiB}, 1}, SlotChoice{{.simple = 8 * kKiB, .ll = 2 * kKiB}, 1},
    SlotChoice{{.simple = 4 * kKiB, .ll = 1 * kKiB}, 1}};

// 48 channels keep the links busy while some of them copy (docs/design/gpu-data-path.md). More than kManyPeers have
// short positions unless switches connect them, since accesses to each peer are not faster with longer ones.
constexpr StagingRing kLargeRing = {.channels = 48, .positions = 4, .position_bytes = 512 * kKiB};
constexpr StagingRing kRingOfMany = {.channels = 48, .positions = 4};
constexpr Rank kManyPeers = 7;
// Between hosts, half of a shard of 8 ranks is as long as a slot. More channels are not faster, as ports or NVLinks
// limit them.
constexpr StagingRing kRingOverHosts = {.channels = 16, .positions = 4, .position_bytes = 2048 * kKiB};

// Peers of a rank, and the memory for their lanes.
struct LaneRoom {
  LanePeers peers;
  std::size_t rank_bytes, remote_bytes, partner_bytes, rail_bytes;

  bool holds_local(const LaneBudget& budget) const { return peers.local * budget.lanes_bytes() <= rank_bytes; }
  bool holds_remote(const LaneBudget& budget) const {
    return peers.remote * 2 * budget.remote_bytes(RemotePeers::all) <= remote_bytes;
  }
  bool holds_partners(const LaneBudget& budget) const {
    return peers.partners * more_than_to_all(budget, RemotePeers::partners) <= partner_bytes;
  }
  bool holds_rail(const LaneBudget& budget) const {
    return peers.others_on_rail * more_than_to_all(budget, RemotePeers::rail) <= rail_bytes;
  }

 private:
  static std::size_t more_than_to_all(const LaneBudget& budget, RemotePeers peer) {
    return 2 * (budget.remote_bytes(peer) - budget.remote_bytes(RemotePeers::all));
  }
};

// Sets these slots, and the most channels that fit. Returns false if these are too few.
bool use_slots(const SlotChoice& choice, const LaneRoom& room, std::uint32_t max_channels, LaneBudget& budget) {
  budget.slots = choice.slots;
  budget.channels = max_channels;
  while (budget.channels > 1 && !room.holds_local(budget)) --budget.channels;
  return budget.channels >= choice.min_channels && room.holds_local(budget);
}

// Chooses the largest slots with enough channels, or the smallest ones.
void choose_lanes_on_host(const LaneRoom& room, LaneLimit limit, LaneBudget& budget) {
  const std::uint32_t max_channels = limit == LaneLimit::in_host_memory ? kMaxSlowChannels : kMaxLaneChannels;
  const auto fits = [&](const SlotChoice& choice) { return use_slots(choice, room, max_channels, budget); };
  if (limit == LaneLimit::large && room.peers.remote == 0 && std::ranges::any_of(kLargeChoices, fits)) return;
  (void)std::ranges::any_of(kChoices, fits);
}

// Chooses the largest slots with enough channels, or those to all ranks. Plans along a rail send to partners, too,
// whose lanes must suffice.
void choose_lanes_on_rail(const LaneRoom& room, LaneBudget& budget) {
  const std::uint32_t max_channels = budget.fewer_peers.partners;
  for (const auto& [slot_bytes, min_channels] : kRailChoices) {
    const std::size_t bytes = std::max<std::size_t>(slot_bytes, budget.remote_slot_bytes);
    if (bytes > budget.slots.simple) continue;
    budget.rail_slot_bytes = static_cast<std::uint32_t>(bytes);
    budget.fewer_peers.rail = max_channels;
    while (budget.fewer_peers.rail > budget.remote_channels && !room.holds_rail(budget)) --budget.fewer_peers.rail;
    if (budget.fewer_peers.rail >= std::min(min_channels, max_channels) && room.holds_rail(budget)) return;
  }
}

// `max_channels`: maximum to partners.
void choose_lanes_between_hosts(const LaneRoom& room, std::uint32_t max_channels, LaneBudget& budget) {
  for (const SlotChoice& choice : kChoices) {
    if (choice.slots.simple > budget.slots.simple) continue;
    budget.remote_slot_bytes = choice.slots.simple;
    budget.remote_channels = std::min(budget.channels, kMaxSlowChannels);
    while (budget.remote_channels > 1 && !room.holds_remote(budget)) --budget.remote_channels;
    if (budget.remote_channels >= choice.min_channels && room.holds_remote(budget)) break;
  }
  budget.rail_slot_bytes = budget.remote_slot_bytes;
  if (room.peers.partners == 0) return;
  budget.fewer_peers.partners = max_channels;
  while (budget.fewer_peers.partners > budget.remote_channels && !room.holds_partners(budget))
    --budget.fewer_peers.partners;
  if (room.peers.others_on_rail > 0) choose_lanes_on_rail(room, budget);
  budget.remote_ll_channels = kMaxRemoteLlChannels;
  const std::size_t peers = room.peers.partners + room.peers.others_on_rail;
  while (budget.remote_ll_channels > 1 && peers * 2 * budget.remote_ll_bytes(RemotePeers::rail) > kRemoteLlBytes)
    --budget.remote_ll_channels;
}

}  // namespace

LanePeers peers_in(const Hosts& hosts, const Rails& rails) {
  std::map<Rank, Rank> ranks_of;  // By first rank of the host.
  for (const Rank first : hosts.first_ranks()) ++ranks_of[first];
  LanePeers peers = {.partners = rails.partners(), .others_on_rail = rails.others()};
  for (const auto& [first, ranks] : ranks_of) {
    peers.local = std::max(peers.local, ranks - 1);
    peers.remote = std::max(peers.remote, hosts.ranks() - ranks);
  }
  return peers;
}

LaneBudget budget_for(const LanePeers& peers, std::size_t page_bytes, LaneLimit limit) {
  const bool in_host_memory = limit == LaneLimit::in_host_memory;
  const bool further = limit == LaneLimit::small;
  const LaneRoom room = {peers, limit == LaneLimit::large ? kLargeLaneBytes : kSmallLaneBytes,
                         further ? kRemoteBytes / 2 : kRemoteBytes, further ? kPartnerBytes / 2 : kPartnerBytes,
                         further ? kRailBytes / 2 : kRailBytes};
  LaneBudget budget;
  choose_lanes_on_host(room, limit, budget);
  const bool few_or_switched = peers.local <= kManyPeers || peers.multicast;
  if (!in_host_memory && peers.local > 0) {
    if (peers.remote == 0) budget.ring = further ? kSmallRing : few_or_switched ? kLargeRing : kRingOfMany;
    else if (!further && few_or_switched) budget.ring = kRingOverHosts;
  }
  // Plans in the ring between hosts have no lanes within hosts.
  const bool only_rails = peers.remote > 0 && budget.ring.channels > 0;
  if (peers.remote > 0) choose_lanes_between_hosts(room, only_rails ? kMaxLaneChannels : budget.channels, budget);
  budget.bytes = round_up(budget.lanes_bytes(), page_bytes);
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

std::size_t LaneBudget::remote_lanes(RemotePeers peer) const {
  std::uint32_t collectives = kMaxLaneTags * remote_channels;
  if (peer == RemotePeers::partners && fewer_peers.partners > remote_channels)
    collectives = kMaxLaneTags * fewer_peers.partners;
  if (peer == RemotePeers::rail && fewer_peers.rail > remote_channels)
    collectives += kRailTags * (fewer_peers.rail - remote_channels);
  return collectives + std::min(remote_channels, kMaxMessageChannels);
}

std::size_t LaneBudget::remote_bytes(RemotePeers peer) const {
  return remote_lanes(peer) *
         round_up(HalfLane::memory_bytes(message_spec(0, 1, 0, slots_between_hosts(peer))), kPageBytes);
}

std::size_t LaneBudget::remote_slots_bytes(RemotePeers peer) const {
  return remote_lanes(peer) *
         round_up(HalfLane::slots_bytes(message_spec(0, 1, 0, slots_between_hosts(peer))), kPageBytes);
}

std::size_t LaneBudget::remote_ll_bytes(RemotePeers peer) const {
  return remote_ll_lanes(peer) * HalfLane::kCounterBytes + remote_ll_slots_bytes(peer);
}

std::size_t LaneBudget::remote_ll_slots_bytes(RemotePeers peer) const {
  const LaneSpec spec = spec_of({.peer = 1}, 0, Protocol::ll, Slots::max, slots_between_hosts(peer));
  return remote_ll_lanes(peer) * round_up(HalfLane::slots_bytes(spec), kPageBytes);
}

// Counts targets only: every lane that a rank reads is written by a peer.
std::uint32_t tags_of(std::span<const Plan> plans) {
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
