#include "transports/half_lane.h"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <string>

#include "src/base/pages.h"
#include "transports/lay_lane.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMaxSlotBytes = 16 << 20;
static_assert(kControlBytes <= HalfLane::kCounterBytes);

// A half has slots of its own, even if the lane shares its slots with a partner.
LaneSpec alone(LaneSpec spec) {
  spec.form = LaneForm::one_way;
  spec.slot_shift = HalfLane::kSlotShift;
  return spec;
}

}  // namespace

Status HalfLane::check(const LaneSpec& spec) {
  static_assert(kSlots <= kMaxLengths);
  const bool right = spec.protocol != Protocol::ll128 && spec.slot_bytes > 0 && spec.slot_bytes <= kMaxSlotBytes &&
                     spec.slot_bytes % kLineBytes == 0;
  if (right) return {};
  return invalid_usage("a lane from rank " + std::to_string(spec.writer) + " to rank " + std::to_string(spec.reader) +
                       " with slots of " + std::to_string(spec.slot_bytes) + " bytes cannot go over a network");
}

std::size_t HalfLane::memory_bytes(const LaneSpec& spec) { return kCounterBytes + slots_bytes(spec); }

std::size_t HalfLane::slots_bytes(const LaneSpec& spec) { return tutti::slots_bytes(alone(spec)); }

LaneMemory HalfLane::allocate(std::size_t bytes) {
  const std::align_val_t page{mapped_page_bytes()};
  return {static_cast<std::byte*>(::operator new(bytes, page)),
          [page](std::byte* memory) { ::operator delete(memory, page); }};
}

Result<LaneMemory> HalfLane::allocate_shared(std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return system_error("map " + std::to_string(bytes) + " bytes for lanes");
  return LaneMemory(static_cast<std::byte*>(mapped), [bytes](std::byte* memory) { ::munmap(memory, bytes); });
}

// Slots are not initialized, so the system allocates no pages that messages do not use.
HalfLane::HalfLane(std::uint32_t owner, const LaneSpec& lane, LaneEnd which, HalfMemory lies)
    : memory(std::move(lies)), spec(lane), context(owner), end(which) {
  std::byte* control = memory.control.get();
  if (memory.slots == nullptr) memory.slots = LaneMemory(memory.control, control + kCounterBytes);
  std::memset(control, 0, kControlBytes);
  view = lay_lane(alone(spec), control, memory.slots.get()).forward;
  view.words = reinterpret_cast<LaneWords*>(control);
}

}  // namespace tutti
