// Lanes between two ranks in memory that was taken for them at once: on the reader's device, where the writer of
// another process has opened it, or on the host. Both lay those of collectives out one after the other, in the order in
// which their calls need them. That is the same order, for matching calls, so neither has to tell the other. Those of
// messages have fixed places.
#pragma once

#include <map>

#include "src/communicator/peers/lane_budget.h"
#include "transports/transport.h"

namespace tutti {

class Inbox {
 public:
  // `memory`: zeroed, as this rank's device sees it; null: none.
  Inbox() = default;
  Inbox(std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  // There is room for all that a budget of lanes allows.
  Result<LanePair> lane(const LaneSpec& spec);

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t used_ = 0;      // From the front, by collectives,
  std::size_t reserved_ = 0;  // and from the back, by messages.
  std::map<LaneSpec, LanePair> lanes_;
};

}  // namespace tutti
