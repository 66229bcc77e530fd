// Names of lanes, flags and messages, equal at both ends; and the plan of a message.
#pragma once

#include <cstdint>
#include <vector>

#include "src/communicator/call/call.h"
#include "src/plan/lanes.h"
#include "src/plan/plan.h"
#include "transports/transport.h"

namespace tutti {

// Bytes of a slot, by protocol.
struct SlotSizes {
  std::uint32_t simple = 128 * 1024;
  std::uint32_t ll = 10 * kLineBytes;  // 560 bytes of data.
};

// Number of slots of a lane. With more slots a writer can run further ahead, but fewer of them stay in the nearest
// caches. Short consecutive calls benefit from more slots. Calls with many chunks gain nothing beyond what their plan
// needs. Two-way lanes need no credits and have only the slots that their plans need.
enum class Slots : std::uint8_t { one, several, max };
constexpr std::uint8_t slot_shift_of(Slots slots) { return slots == Slots::one ? 0 : slots == Slots::several ? 2 : 3; }

// Returns the name of a lane of a rank's plan, on channel 0.
LaneSpec spec_of(const LaneUse& use, Rank self, Protocol protocol, Slots slots, const SlotSizes& sizes = {});
LaneSpec flag_spec(Rank writer, Rank reader, std::uint16_t tag);
// Returns the name of the lane for point-to-point messages, which may be in flight beside collectives.
LaneSpec message_spec(Rank writer, Rank reader, std::uint16_t tag, const SlotSizes& sizes = {});
// Returns the plan of a send or recv: one step, which copies the input into the lane or the lane into the output.
Plan message_plan(const Call& call, Rank self);
// Returns the names of all flags of a plan.
std::vector<LaneSpec> flags_of(const Plan& plan);

}  // namespace tutti
