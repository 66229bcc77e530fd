#include "transports/shm/shm_transport.h"

#include <algorithm>
#include <string>

#include "src/base/pages.h"
#include "transports/lay_lane.h"

namespace tutti {
namespace {

// Size of the first segment, of address space rather than memory: small for few lanes. Later segments are larger, so
// that many lanes need few descriptors.
constexpr std::size_t kFirstSegmentBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxDoublings = 3;

constexpr std::uint32_t kMaxSlotShift = 3;  // Two sets of slots must not exceed kMaxSlots, the number of signatures.
static_assert(2U << kMaxSlotShift <= kMaxSlots);

}  // namespace

// Slots of a page or more are aligned to pages, because hardware prefetchers stop at page boundaries.
Result<LaneAddress> ShmTransport::create(const LaneSpec& spec) {
  const std::size_t slots = slots_bytes(spec);
  const std::size_t alignment = slots >= kPageBytes ? kPageBytes : kWordsBytes;
  const std::size_t room = kControlBytes + alignment + round_up(slots, kWordsBytes);
  if (own_.empty() || used_ + room > own_.back().size()) {
    const std::size_t bytes =
        std::max(kFirstSegmentBytes << std::min(own_.size(), kMaxDoublings), round_up(room, kPageBytes));
    Segment made = TUTTI_TRY(Segment::create("tutti-lanes", bytes));
    own_.push_back(std::move(made));
    used_ = 0;
  }
  LaneAddress address;
  address.segment = static_cast<std::uint32_t>(own_.size() - 1);
  address.segment_bytes = own_.back().size();
  address.words = used_;
  address.slots = slots == 0 ? 0 : round_up(used_ + kControlBytes, alignment);
  used_ = slots == 0 ? used_ + kControlBytes : round_up(address.slots + slots, kWordsBytes);
  return address;
}

Status ShmTransport::adopt(std::uint32_t peer, std::uint32_t segment, Segment memory) {
  memory.close_descriptor();
  if (!peers_.try_emplace({peer, segment}, std::move(memory)).second) {
    return invalid_usage("rank " + std::to_string(peer) + " passed segment " + std::to_string(segment) + " twice");
  }
  return {};
}

Result<LanePair> ShmTransport::view(const LaneSpec& spec, std::uint32_t owner, const LaneAddress& address) const {
  const auto peer = peers_.find({owner, address.segment});
  if (owner == self_ ? address.segment >= own_.size() : peer == peers_.end()) {
    return internal_error("segment " + std::to_string(address.segment) + " of rank " + std::to_string(owner) +
                          " is not mapped");
  }
  const Segment& memory = owner == self_ ? own_[address.segment] : peer->second;
  const std::size_t size = memory.size();
  if (spec.slot_shift > kMaxSlotShift) {
    return invalid_usage("a lane with 2^" + std::to_string(spec.slot_shift) +
                         " slots is not supported: the maximum is " + std::to_string(1 << kMaxSlotShift));
  }
  const std::size_t slots = slots_bytes(spec);
  if (address.words % kWordsBytes != 0 || address.words > size || size - address.words < kControlBytes ||
      address.slots % kWordsBytes != 0 || address.slots > size || size - address.slots < slots) {
    return invalid_usage("rank " + std::to_string(owner) + " sent an address outside of its segment");
  }
  return lay_lane(spec, memory.data() + address.words, memory.data() + address.slots);
}

}  // namespace tutti
