// A mapped lane as executors see it, on the host and on a device: slots, counters, and who may write them when.
//
// A lane has one writer and one reader, and lies in slots that both ends compute from a message's number alone.
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

// Words that the writer of a lane publishes. Only the writer writes them.
struct alignas(kWordsBytes) LaneWords {
  std::uint64_t posted;                 // Messages complete so far, since the lane was made.
  std::uint32_t signatures[kMaxSlots];  // [k % kMaxSlots]: signature of the call that message k belongs to.
  std::uint32_t lengths[kMaxLengths];  // [k % kMaxLengths]: length of message k in bytes, for a thread that sends it to
                                       // another host.
};
static_assert(sizeof(LaneWords) == kWordsBytes);

// Credits that the reader of a one_way lane returns. Only the reader writes them. An LL lane needs them as well.
struct alignas(kWordsBytes) LaneCredits {
  std::uint64_t taken;  // Messages consumed so far.
};
static_assert(sizeof(LaneCredits) == kWordsBytes);

// One end's view. Plain data; the pointers are valid in the process (or on the device) it was made for.
struct LaneView {
  std::byte* slots = nullptr;  // Slot s at slots + s * slot_bytes. swap: two sets. Null: a flag, counters only.
  LaneWords* words = nullptr;
  LaneCredits* credits = nullptr;  // one_way only.
  std::uint32_t slot_bytes = 0;
  std::uint8_t slot_shift = 0;  // 1 << slot_shift slots (in each set).
  LaneForm form = LaneForm::one_way;
  Protocol protocol = Protocol::simple;
  std::uint8_t side = 0;  // swap: the set of slots this lane's writer starts with.
};
static_assert(sizeof(LaneView) == 32);

// Whether what its reader leaves in a slot is nobody's.
TUTTI_HOST_DEVICE inline bool goes_back_empty(const LaneView& lane) {
  return lane.form == LaneForm::one_way && lane.protocol == Protocol::simple && lane.slots != nullptr;
}

// Where message `sequence` of the lane lies.
TUTTI_HOST_DEVICE inline std::byte* slot_of(const LaneView& lane, std::uint64_t sequence) {
  const std::uint64_t slots = std::uint64_t{1} << lane.slot_shift;
  std::uint64_t slot = sequence & (slots - 1);
  if (lane.form == LaneForm::swap) slot += ((sequence >> lane.slot_shift) + lane.side) % 2 * slots;
  return lane.slots + slot * lane.slot_bytes;
}

}  // namespace tutti
