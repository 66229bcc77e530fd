// Lanes between two ranks in one allocation: on the reader's device, opened by a writer in another process, or on
// the host. Both ends lay out the lanes of collectives one after another, in the order in which their calls need
// them. Matching calls give the same order, so no message is needed. Lanes of messages have fixed offsets.
#pragma once

#include <map>

#include "src/communicator/peers/lane_budget.h"
#include "transports/transport.h"

namespace tutti {

class PairLanes {
 public:
  // `memory`: zeroed, at the address that this rank's device uses; null: none.
  PairLanes() = default;
  PairLanes(std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  // Returns the lane, laid out at its first use. All lanes that a LaneBudget permits fit.
  Result<LanePair> lane(const LaneSpec& spec);

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t used_ = 0;      // Bytes at the front, used by collectives.
  std::size_t reserved_ = 0;  // Bytes at the back, used by messages.
  std::map<LaneSpec, LanePair> lanes_;
};

}  // namespace tutti
