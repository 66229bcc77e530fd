// One end of a lane, and the Simple protocol: data in a slot, then a counter. Host and device compile this source.
#pragma once

#include <cstdint>

#include "src/base/atomic.h"
#include "transports/lane_view.h"

namespace tutti {

// This rank's end; private to it. `next` counts the messages (or flags) this end has handled.
struct LaneState {
  LaneView view;
  std::uint64_t next = 0;
  std::uint64_t seen = 0;  // The other end's counter when last read: the line is read again only if this is not enough.
};
static_assert(sizeof(LaneState) == 48);

// Who sent what arrives must have made the same call; see communicator/board.h.
struct Signature {
  std::uint32_t word = 0;
};
static_assert(sizeof(Signature) == 4);

TUTTI_HOST_DEVICE inline bool simple_arrived(LaneState& lane) {
  if (lane.seen > lane.next) return true;
  lane.seen = load_acquire(&lane.view.words->posted);
  return lane.seen > lane.next;
}

// Only after simple_arrived().
TUTTI_HOST_DEVICE inline bool simple_matches(const LaneState& lane, Signature signature) {
  return load_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots]) == signature.word;
}

// Whether the slot of the next message may be written. Lanes that share slots have no credits: their plans receive
// before they send again, which plan/lanes.h proves.
TUTTI_HOST_DEVICE inline bool slot_free(LaneState& lane) {
  if (lane.view.form != LaneForm::one_way || lane.view.slots == nullptr) return true;
  const std::uint64_t slots = std::uint64_t{1} << lane.view.slot_shift;
  if (lane.next - lane.seen < slots) return true;
  lane.seen = load_acquire(&lane.view.credits->taken);
  return lane.next - lane.seen < slots;
}

// A message that tells of itself has been sent.
TUTTI_HOST_DEVICE inline void count_message(LaneState& lane) { ++lane.next; }

TUTTI_HOST_DEVICE inline void simple_post(LaneState& lane, Signature signature, std::uint64_t bytes) {
  store_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots], signature.word);
  store_relaxed(&lane.view.words->lengths[lane.next % kMaxLengths], static_cast<std::uint32_t>(bytes));
  store_release(&lane.view.words->posted, ++lane.next);
}

// The message has been read: its slot may be written again.
TUTTI_HOST_DEVICE inline void take(LaneState& lane) {
  ++lane.next;
  if (lane.view.credits != nullptr && lane.view.slots != nullptr) store_release(&lane.view.credits->taken, lane.next);
}

}  // namespace tutti
