// Which lanes a rank's plan uses, and which of them may hand slots back with data in them (see lane_form.h).
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
  std::uint16_t partner_tag = 0;  // Of the lane the other way that shares the slots; where the form is not one_way.
  bool answers = false;           // Of a round trip: this lane brings slots back that its partner took there.
  std::uint32_t messages = 0;     // Per chunk.
  std::uint32_t longest = 0;      // Units of its longest message.
  std::uint32_t stage = 0;        // Of the first message.
  bool operator==(const LaneUse&) const = default;
};

// The lanes of plans[self], sorted by peer, tag, direction. Both ends of a lane get the same form: it is decided from
// both plans and nothing else. Forms are proved safe for `loop`, whose slots are those of the lane (of a swap, in each
// of its two sets), because neither has credits: a writer does not wait for slots.
//   round_trip  (A -> B tag t, B -> A tag t'): each message that B receives on t it folds in the slot and returns on t'
//               in the same step, with as many units; A receives on t' what it sent on t, one for one, and as the loop
//               orders its steps never has more of them under way than there are slots.
//   swap        (both ways, one tag): a rank sends its k-th message only after it has received the (k - loop.slots)-th,
//               as the loop orders its steps; it sends and receives equally many, whichever units are empty.
// The best form wins: round_trip, then swap. A lane belongs to one pair: where it could be in two, it is in none.
std::vector<LaneUse> lanes_of(std::span<const Plan> plans, Rank self, const Loop& loop = {});

// Units of the longest message of any plan, or of a longer step that a rank does by itself; 0 if there are no lanes.
// What is longer than a slot goes in slices, each step of its round with the others: so where messages must be one
// slice (Proof::balanced), all of this must fit a slot. All ranks cut alike, so it is that of all plans.
std::uint32_t longest_message(std::span<const Plan> plans);

}  // namespace tutti
