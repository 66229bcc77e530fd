#include "src/communicator/peers/pair_lanes.h"

#include <algorithm>
#include <string>

#include "transports/lay_lane.h"

namespace tutti {

Result<LanePair> PairLanes::lane(const LaneSpec& spec) {
  const auto known = lanes_.find(spec);
  if (known != lanes_.end()) return known->second;
  const std::size_t room = (kControlBytes + slots_bytes(spec) + kWordsBytes - 1) / kWordsBytes * kWordsBytes;
  const bool message = spec.channel >= kMessageChannel;
  const std::size_t behind = message ? (spec.channel - kMessageChannel + 1) * room : 0;
  const std::size_t reserved = std::max(reserved_, behind);
  const std::size_t used = message ? used_ : used_ + room;
  if (used + reserved > bytes_) {
    return internal_error("the memory for lanes from rank " + std::to_string(spec.writer) + " to rank " +
                          std::to_string(spec.reader) + " is full: " + std::to_string(bytes_) + " bytes");
  }
  std::byte* memory = message ? memory_ + bytes_ - behind : memory_ + used_;
  used_ = used;
  reserved_ = reserved;
  return lanes_[spec] = lay_lane(spec, memory, memory + kControlBytes);
}

}  // namespace tutti
