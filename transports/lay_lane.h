// How a lane, or a pair of lanes that share their slots, lies in memory, whoever's memory it is.
#pragma once

#include <cstddef>

#include "transports/transport.h"

namespace tutti {

// Forward words, partner words or credits.
inline constexpr std::size_t kControlBytes = 2 * kWordsBytes;

inline std::size_t slots_bytes(const LaneSpec& spec) {
  const std::size_t sets = spec.form == LaneForm::swap ? 2 : 1;
  return sets * (std::size_t{spec.slot_bytes} << spec.slot_shift);
}

// `control`: kControlBytes, zeroed; `slots`: slots_bytes(), not looked at if there are none. Both aligned to
// kWordsBytes.
inline LanePair lay_lane(const LaneSpec& spec, std::byte* control, std::byte* slots) {
  auto* words = reinterpret_cast<LaneWords*>(control);
  LanePair pair;
  pair.forward = {.slots = spec.slot_bytes == 0 ? nullptr : slots,
                  .words = words,
                  .slot_bytes = spec.slot_bytes,
                  .slot_shift = static_cast<std::uint8_t>(spec.slot_shift),
                  .form = spec.form,
                  .protocol = spec.protocol,
                  .side = 0};
  if (spec.form == LaneForm::one_way) {
    pair.forward.credits = reinterpret_cast<LaneCredits*>(words + 1);
  } else {
    pair.partner = pair.forward;
    pair.partner.words = words + 1;
    pair.partner.side = 1;
  }
  return pair;
}

}  // namespace tutti
