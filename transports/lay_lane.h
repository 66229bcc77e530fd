// Memory layout of a lane, or of a pair of lanes with common slots, independent of the kind of memory.
#pragma once

#include <cstddef>

#include "transports/transport.h"

namespace tutti {

// Size of the forward words and the partner's words or credits.
inline constexpr std::size_t kControlBytes = 2 * kWordsBytes;

inline std::size_t slots_bytes(const LaneSpec& spec) {
  const std::size_t sets = spec.form == LaneForm::swap ? 2 : 1;
  return sets * (std::size_t{spec.slot_bytes} << spec.slot_shift);
}

// `control`: kControlBytes, zeroed. `slots`: slots_bytes(); unused if there are no slots. Both are aligned to
// kWordsBytes.
inline LanePair lay_lane(const LaneSpec& spec, std::byte* control, std::byte* slots) {
  auto* words = reinterpret_cast<LaneWords*>(control);
  LanePair pair;
  pair.forward = {.slots = spec.slot_bytes == 0 ? nullptr : slots,
                  .words = has_inline_flags(spec.protocol) ? nullptr : words,
                  .slot_bytes = spec.slot_bytes,
                  .slot_shift = static_cast<std::uint8_t>(spec.slot_shift),
                  .form = spec.form,
                  .protocol = spec.protocol,
                  .side = 0};
  if (spec.form == LaneForm::one_way) {
    pair.forward.credits = reinterpret_cast<LaneCredits*>(words + 1);
  } else {
    pair.partner = pair.forward;
    if (pair.forward.words != nullptr) pair.partner.words = words + 1;
    pair.partner.side = 1;
  }
  return pair;
}

}  // namespace tutti
