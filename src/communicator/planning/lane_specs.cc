#include "src/communicator/planning/lane_specs.h"

#include <set>

namespace tutti {
namespace {

LaneSpec spec_with_slots(LaneForm form, Protocol protocol, Slots slots, const SlotSizes& sizes) {
  LaneSpec spec;
  spec.form = form;
  spec.protocol = protocol;
  spec.slot_bytes = has_inline_flags(protocol) ? sizes.ll : sizes.simple;
  spec.slot_shift = slot_shift_of(slots);
  return spec;
}

}  // namespace

// The forward lane names a pair of lanes. In a round trip this is the lane that is answered, in a swap the lower
// rank's.
LaneSpec spec_of(const LaneUse& use, Rank self, Protocol protocol, Slots slots, const SlotSizes& sizes) {
  LaneSpec spec = spec_with_slots(use.form, protocol, slots, sizes);
  const bool sends = use.direction == Direction::sends;
  bool forward = true;
  if (use.form == LaneForm::round_trip) forward = !use.answers;
  if (use.form == LaneForm::swap) forward = sends == (self < use.peer);
  const bool writes_forward = sends == forward;
  spec.writer = writes_forward ? self : use.peer;
  spec.reader = writes_forward ? use.peer : self;
  spec.tag = forward ? use.tag : use.partner_tag;
  spec.partner_tag = forward ? use.partner_tag : use.tag;
  if (use.form == LaneForm::one_way) spec.partner_tag = 0;
  return spec;
}

LaneSpec message_spec(Rank writer, Rank reader, std::uint16_t tag, const SlotSizes& sizes) {
  LaneSpec spec = spec_with_slots(LaneForm::one_way, Protocol::simple, Slots::max, sizes);
  spec.writer = writer;
  spec.reader = reader;
  spec.tag = tag;
  spec.channel = 1;  // Distinct from the lanes of collectives, which may be in flight at the same time.
  return spec;
}

LaneSpec flag_spec(Rank writer, Rank reader, std::uint16_t tag) {
  LaneSpec spec;
  spec.writer = writer;
  spec.reader = reader;
  spec.tag = tag;
  return spec;
}

Plan message_plan(const Call& call, Rank self) {
  Plan plan;
  plan.shape = {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}};
  plan.steps = Steps(self);
  if (call.kind == Kind::send) {
    plan.steps.send(input(0), call.root);
  } else {
    plan.steps.recv(call.root, output(0));
  }
  plan.rounds = {0, 1};
  return plan;
}

std::vector<LaneSpec> flags_of(const Plan& plan) {
  std::set<LaneSpec> flags;
  const Rank self = plan.steps.self();
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (const Operand& operand : plan.steps[s].sources) {
      if (operand.space == Space::flag) flags.insert(flag_spec(operand.peer, self, operand.tag));
    }
    for (const Operand& operand : plan.steps[s].targets) {
      if (operand.space == Space::flag) flags.insert(flag_spec(self, operand.peer, operand.tag));
    }
  }
  return {flags.begin(), flags.end()};
}

}  // namespace tutti
