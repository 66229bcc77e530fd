// Operations of a step on the ends of lanes: receive a message in place, wait for a free slot, send. Host and device
// compile this source.
#pragma once

#include "src/executor/ll.h"
#include "src/executor/run.h"

namespace tutti {

// The condition that a step waits for; to be polled.
struct Blocked {
  const Operand* operand = nullptr;  // The lane or flag.
  const LaneState* lane = nullptr;
  const std::uint64_t* line = nullptr;  // LL: address of the missing flag, and its expected value.
  std::uint64_t flag = 0;
  bool sends = false;

  TUTTI_HOST_DEVICE bool over() const {
    if (line != nullptr) return load_acquire(line) == flag;
    if (!sends) return load_acquire(&lane->view.words->posted) > lane->next;
    return lane->next - load_acquire(&lane->view.credits->taken) < std::uint64_t{1} << lane->view.slot_shift;
  }
};
static_assert(sizeof(Blocked) == 40);

// Receives an LL message. `data` becomes its address: in its line if it is a single one, otherwise in `stage`.
TUTTI_HOST_DEVICE inline Progress receive_ll(LaneState& lane, Signature signature, std::uint64_t bytes,
                                             std::byte* stage, std::byte*& data, Blocked& blocked) {
  std::byte* line = slot_of(lane.view, lane.next);
  blocked.flag = line_flag(lane, signature);
  if (bytes > 0 && bytes <= kLineData) {
    data = line + line_begin(bytes);
    blocked.line = load_acquire(flag_of(line)) == blocked.flag ? nullptr : flag_of(line);
  } else {
    data = stage;
    blocked.line = ll_receive(line, blocked.flag, stage, bytes);
  }
  if (blocked.line == nullptr) return Progress::done;
  return flag_mismatch(blocked.line, blocked.flag) ? Progress::mismatch : Progress::waiting;
}

// Receives a Simple message in its slot, or a flag.
TUTTI_HOST_DEVICE inline Progress receive_simple(LaneState& lane, Signature signature, std::byte*& data) {
  if (!simple_arrived(lane)) return Progress::waiting;
  if (!simple_matches(lane, signature)) return Progress::mismatch;
  data = lane.view.slots == nullptr ? nullptr : slot_of(lane.view, lane.next);
  return Progress::done;
}

// Sends an LL message. Call count_message() afterwards.
TUTTI_HOST_DEVICE inline void send_ll(const LaneState& lane, Signature signature, const std::byte* data,
                                      std::uint64_t bytes) {
  ll_send(slot_of(lane.view, lane.next), line_flag(lane, signature), data, bytes);
  wake_peer(lane);
}

TUTTI_HOST_DEVICE inline Progress room_for_message(LaneState& lane) {
  return slot_free(lane) ? Progress::done : Progress::waiting;
}

}  // namespace tutti
