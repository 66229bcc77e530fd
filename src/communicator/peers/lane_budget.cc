#include "src/communicator/peers/lane_budget.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "src/base/pages.h"
#include "src/communicator/peers/rank_device_memory.h"
#include "transports/half_lane.h"
#include "transports/lay_lane.h"

namespace tutti {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kRankBytes = 48 * 1024 * kKiB;  // For lanes from all writers.
constexpr std::size_t kSmallProtocols = 2;
constexpr std::uint32_t kFewChannels = 2;  // With fewer channels, smaller slots are used.

// Sizes of slots for few, more, and many ranks.
constexpr std::array kSlots = {SlotSizes{.simple = 64 * kKiB, .ll = 8 * kKiB},
                               SlotSizes{.simple = 32 * kKiB, .ll = 8 * kKiB},
                               SlotSizes{.simple = 16 * kKiB, .ll = 4 * kKiB}};

// Bytes for lanes of every protocol and flags of each tag, for messages, and for flags of calls in windows on all their
// channels.
std::size_t bytes_for(const SlotSizes& slots, std::uint32_t channels) {
  const LaneSpec message = message_spec(0, 1, 0, slots);
  const std::size_t simple = round_up(kControlBytes + slots_bytes(message), kWordsBytes);
  const std::size_t ll = round_up(kControlBytes + (std::size_t{slots.ll} << message.slot_shift), kWordsBytes);
  const std::size_t channel = kMaxLaneTags * (simple + kSmallProtocols * ll + kControlBytes);
  const std::size_t flags = kMaxChannels * kMaxLaneTags * kControlBytes;
  return round_up(channels * channel + std::min(channels, kMaxMessageChannels) * simple + flags, kPageBytes);
}

std::uint32_t channels_in(std::size_t bytes, const SlotSizes& slots) {
  std::uint32_t channels = kMaxLaneChannels;
  while (channels > 0 && bytes_for(slots, channels) > bytes) --channels;
  return channels;
}

Rank max_ranks() { return static_cast<Rank>(kRankBytes / bytes_for(kSlots.back(), 1) + 1); }

}  // namespace

Result<LaneBudget> budget_for(Rank ranks, std::size_t page_bytes) {
  const std::size_t share = kRankBytes / std::max(ranks - 1, 1U);
  for (const SlotSizes& slots : kSlots) {
    const std::uint32_t channels = channels_in(share, slots);
    const bool smallest = slots.simple == kSlots.back().simple;
    if (channels >= kFewChannels || (smallest && channels > 0))
      return LaneBudget{
          .slots = slots, .channels = channels, .bytes = round_up(bytes_for(slots, channels), page_bytes)};
  }
  return unsupported(std::to_string(ranks) + " ranks on GPUs, where not all are in one process whose GPUs reach each " +
                     "other, are more than the memory for their lanes is shared among: take at most " +
                     std::to_string(max_ranks()) + " ranks, or fewer on each host");
}

std::size_t LaneBudget::remote_bytes() const {
  return remote_lanes() * round_up(HalfLane::memory_bytes(message_spec(0, 1, 0, slots)), kPageBytes);
}

std::size_t LaneBudget::remote_slots_bytes() const {
  return remote_lanes() * round_up(HalfLane::slots_bytes(message_spec(0, 1, 0, slots)), kPageBytes);
}

// Counts targets only: every lane that a rank reads is written by a peer.
std::uint32_t tags_of(const std::vector<Plan>& plans) {
  std::size_t most = 0;
  for (const Plan& plan : plans) {
    std::map<Rank, std::set<std::uint16_t>> tags;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (const Operand& operand : plan.steps[s].targets) {
        if (!operand.is_memory()) tags[operand.peer].insert(operand.tag);
      }
    }
    for (const auto& [peer, own] : tags) most = std::max(most, own.size());
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace tutti
