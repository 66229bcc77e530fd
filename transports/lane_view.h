// View of a mapped lane, used by executors on hosts and devices: slots, counters, and their owners.
//
// A lane has one writer and one reader. Both ends compute the slot of a message from its number alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/lane_form.h"
#include "src/base/platform.h"
#include "src/base/protocol.h"

namespace tutti {

inline constexpr std::uint32_t kMaxSlots = 16;
inline constexpr std::uint32_t kMaxLengths = 8;
inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLineData = 56;     // The last 8 bytes of a line are its flag.
inline constexpr std::size_t kWordsBytes = 128;  // Counters live two lines apart: adjacent lines are fetched in pairs.

// Words that only the writer of a lane writes.
struct alignas(kWordsBytes) LaneWords {
  std::uint64_t posted;                 // Number of complete messages since the lane was created.
  std::uint32_t signatures[kMaxSlots];  // [k % kMaxSlots]: signature of the call that message k belongs to.
  std::uint32_t lengths[kMaxLengths];
};
static_assert(sizeof(LaneWords) == kWordsBytes);

// Credits of a one_way lane, which only the reader writes. LL lanes need them, too.
struct alignas(kWordsBytes) LaneCredits {
  std::uint64_t taken;  // Messages consumed so far.
};
static_assert(sizeof(LaneCredits) == kWordsBytes);

// One end's view. Plain data. The pointers are valid in one process, or on one device.
struct LaneView {
  // Slot s is at slots + s * slot_bytes; swap: two sets. Null: a flag, which has counters only.
  std::byte* slots = nullptr;
  // Null for lanes of LL within a host. Lanes to other hosts have words, by which the connection learns of messages.
  LaneWords* words = nullptr;
  LaneCredits* credits = nullptr;  // one_way only.
  std::uint32_t slot_bytes = 0;
  std::uint8_t slot_shift = 0;  // 1 << slot_shift slots (in each set).
  LaneForm form = LaneForm::one_way;
  Protocol protocol = Protocol::simple;
  std::uint8_t side = 0;  // swap: set of slots with which this lane's writer starts.
};
static_assert(sizeof(LaneView) == 32);

// True if the content of a slot is unused once the reader has taken it.
TUTTI_HOST_DEVICE inline bool returns_empty_slots(const LaneView& lane) {
  return lane.form == LaneForm::one_way && lane.protocol == Protocol::simple && lane.slots != nullptr;
}

// Returns the slot of message `sequence`.
TUTTI_HOST_DEVICE inline std::byte* slot_of(const LaneView& lane, std::uint64_t sequence) {
  const std::uint64_t slots = std::uint64_t{1} << lane.slot_shift;
  std::uint64_t slot = sequence & (slots - 1);
  if (lane.form == LaneForm::swap) slot += ((sequence >> lane.slot_shift) + lane.side) % 2 * slots;
  return lane.slots + slot * lane.slot_bytes;
}

}  // namespace tutti
