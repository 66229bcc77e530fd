// One end of a lane, and the Simple protocol: data in a slot, then a counter. Host and device compile this source.
#pragma once

#include <cstdint>

#include "src/base/atomic.h"
#include "src/base/sleep_word.h"
#include "transports/lane_view.h"

namespace tutti {

// This rank's private end of a lane. `next` counts the messages or flags handled by this end.
struct LaneState {
  LaneView view;
  std::uint64_t next = 0;
  // Last value read of the other end's counter. The counter is read again only if this value does not suffice.
  std::uint64_t seen = 0;
  // The word on which the rank at the other end sleeps; see src/base/sleep_word.h. Null: it does not sleep on one.
  std::uint32_t* peer_asleep = nullptr;
};
static_assert(sizeof(LaneState) == 56);

// Identifies the call: messages with another signature are a mismatch; see src/communicator/control/board.h.
struct Signature {
  std::uint32_t word = 0;
};
static_assert(sizeof(Signature) == 4);

// Called after a store for which the other end may wait.
TUTTI_HOST_DEVICE inline void wake_peer(const LaneState& lane) {
  if (lane.peer_asleep != nullptr) wake_if_asleep(lane.peer_asleep);
}

TUTTI_HOST_DEVICE inline bool simple_arrived(LaneState& lane) {
  if (lane.seen > lane.next) return true;
  lane.seen = load_acquire(&lane.view.words->posted);
  return lane.seen > lane.next;
}

// Call only after simple_arrived() returned true.
TUTTI_HOST_DEVICE inline bool simple_matches(const LaneState& lane, Signature signature) {
  return load_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots]) == signature.word;
}

// True if the slot of the next message may be written. Lanes that share slots have no credits: plans for such lanes
// receive before they send again, as proved by plan/lanes.h.
TUTTI_HOST_DEVICE inline bool slot_free(LaneState& lane) {
  if (lane.view.form != LaneForm::one_way || lane.view.slots == nullptr) return true;
  const std::uint64_t slots = std::uint64_t{1} << lane.view.slot_shift;
  if (lane.next - lane.seen < slots) return true;
  lane.seen = load_acquire(&lane.view.credits->taken);
  return lane.next - lane.seen < slots;
}

// Counts a sent LL message, which carries its own flags. Threads on a host send none to other hosts.
TUTTI_HOST_DEVICE inline void count_message(LaneState& lane) { ++lane.next; }

TUTTI_HOST_DEVICE inline void simple_post(LaneState& lane, Signature signature, std::uint64_t bytes) {
  store_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots], signature.word);
  store_relaxed(&lane.view.words->lengths[lane.next % kMaxLengths], static_cast<std::uint32_t>(bytes));
  store_release(&lane.view.words->posted, ++lane.next);
  wake_peer(lane);
}

// Consumes the message: its slot may be overwritten.
TUTTI_HOST_DEVICE inline void take(LaneState& lane) {
  ++lane.next;
  if (lane.view.credits == nullptr || lane.view.slots == nullptr) return;
  store_release(&lane.view.credits->taken, lane.next);
  wake_peer(lane);
}

}  // namespace tutti
