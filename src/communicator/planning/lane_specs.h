// Lanes, flags and messages as both of their ends name them.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/lanes.h"
#include "src/plan/plan.h"
#include "transports/transport.h"

namespace tutti {

// Bytes of a slot, by protocol.
struct SlotSizes {
  std::uint32_t simple = 128 * 1024;
  std::uint32_t ll = 10 * kLineBytes;  // 560 bytes of data.
};

// How many slots a lane has. The more there are, the further a writer runs ahead, and the less of them stays in the
// nearest caches: a call of many chunks gains nothing from more than its plan takes, and short calls, one after the
// other, do. Lanes that go back with data in them need no credits, and have no more than their plans take.
enum class Slots : std::uint8_t { one, several, most };

// A lane of a rank's plan, on channel 0.
LaneSpec spec_of(const LaneUse& use, Rank self, Protocol protocol, Slots slots, const SlotSizes& sizes = {});
LaneSpec flag_spec(Rank writer, Rank reader, std::uint16_t tag);
// The lane of point-to-point messages, which may be in flight beside collectives.
LaneSpec message_spec(Rank writer, Rank reader, std::uint16_t tag, const SlotSizes& sizes = {});
// The flags of a plan.
std::vector<LaneSpec> flags_of(const Plan& plan);

}  // namespace tutti
