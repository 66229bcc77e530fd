// The lanes that the plan of a rank uses, and which of them can return slots with data in them (see lane_form.h).
#pragma once

#include <span>
#include <vector>

#include "src/base/lane_form.h"
#include "src/plan/loop.h"
#include "src/plan/plan.h"

namespace tutti {

enum class Direction : std::uint8_t { sends, receives };

struct LaneUse {
  Rank peer = 0;
  std::uint16_t tag = 0;
  Direction direction = Direction::sends;
  LaneForm form = LaneForm::one_way;
  std::uint16_t partner_tag = 0;  // Tag of the opposite lane that shares the slots; unused if `form` is one_way.
  bool answers = false;           // In a round trip: this lane returns the slots of its partner lane.
  std::uint32_t messages = 0;     // Messages per chunk.
  std::uint32_t longest = 0;      // Units of its longest message.
  std::uint32_t stage = 0;        // Stage of its first message.
  bool operator==(const LaneUse&) const = default;
};

// Returns the lanes of plans[self], sorted by peer, tag and direction. Both ends of a lane get the same form, since it
// depends only on the two plans. Each form is proved safe for `loop`, whose slots are those of the lane (for a swap,
// those of each of its two sets). The proof is needed since lanes other than one_way have no credits: a writer does not
// wait for slots.
//   round_trip  (A -> B tag t, B -> A tag t'): B folds each message that it receives on t in its slot, and returns it
//               on t' in the same step, with as many units. A receives on t' what it sent on t, one for one. In the
//               order of the loop, A never has more messages in flight than there are slots.
//   swap        (both directions, one tag): a rank sends its k-th message only after it has received the
//               (k - loop.slots)-th, in the order of the loop. It sends and receives equally many messages, whichever
//               units are empty.
// A round trip is preferred to a swap. A lane belongs to one pair: if it could belong to two, it belongs to no pair.
std::vector<LaneUse> lanes_of(std::span<const Plan> plans, Rank self, const Loop& loop = {});

// Returns the units of the longest message of all plans, or of a longer step without messages; 0 if there are no lanes.
// A message longer than a slot is sent in slices, alternating with the other steps of its round. If messages must be
// one slice (see Proof::balanced), the returned number of units must fit a slot. All ranks cut alike, so the result
// covers all plans.
std::uint32_t longest_message(std::span<const Plan> plans);

}  // namespace tutti
