#include "transports/tcp/half_lane.h"

#include <cstring>
#include <new>
#include <string>

#include "transports/lay_lane.h"

namespace tutti {
namespace {

constexpr std::align_val_t kAlignment{4096};
constexpr std::uint32_t kMostSlotBytes = 16 << 20;

}  // namespace

void HalfLane::Free::operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }

Status HalfLane::check(const LaneSpec& spec) {
  static_assert(kSlots <= kMaxLengths);
  const bool right = spec.protocol == Protocol::bulk && spec.slot_bytes > 0 && spec.slot_bytes <= kMostSlotBytes &&
                     spec.slot_bytes % kLineBytes == 0;
  if (right) return {};
  return invalid_usage("a lane from rank " + std::to_string(spec.writer) + " to rank " + std::to_string(spec.reader) +
                       " with slots of " + std::to_string(spec.slot_bytes) + " bytes cannot go over a network");
}

// Slots are left as they come: pages that no message reaches are never there.
HalfLane::HalfLane(std::uint32_t owner, const LaneSpec& lane, LaneEnd which) : spec(lane), context(owner), end(which) {
  constexpr std::size_t kControl = 4096;
  static_assert(kControlBytes <= kControl);
  LaneSpec alone = spec;
  alone.form = LaneForm::one_way;
  alone.slot_shift = kSlotShift;
  memory.reset(static_cast<std::byte*>(::operator new(kControl + slots_bytes(alone), kAlignment)));
  std::memset(memory.get(), 0, kControlBytes);
  view = lay_lane(alone, memory.get(), memory.get() + kControl).forward;
}

}  // namespace tutti
