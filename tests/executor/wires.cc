#include "tests/executor/wires.h"

#include "tests/executor/engine.h"
#include "transports/lay_lane.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kBulkBytes = 256;
constexpr std::uint32_t kLines = 8;
constexpr std::uint32_t kRows = 4;

}  // namespace

std::uint64_t slot_elements(const Voyage& voyage) {
  const std::uint64_t element = voyage.element_bytes;
  if (voyage.protocol == Protocol::bulk) return kBulkBytes / element;
  if (voyage.protocol == Protocol::rows) return rows_capacity(kRows * kRowBytes) / element;
  return (voyage.engine != nullptr ? words_capacity(kLines * kLineBytes) : kLines * kLineData) / element;
}

LaneSpec spec_of(const LaneUse& use, Rank self, const Voyage& voyage, std::uint16_t channel) {
  const bool sends = use.direction == Direction::sends;
  const LaneForm form = voyage.forms == Forms::one_way ? LaneForm::one_way : use.form;
  bool forward = true;
  if (form == LaneForm::round_trip) forward = !use.answers;
  if (form == LaneForm::swap) forward = sends == (self < use.peer);
  LaneSpec spec;
  spec.writer = sends == forward ? self : use.peer;
  spec.reader = sends == forward ? use.peer : self;
  spec.tag = forward ? use.tag : use.partner_tag;
  spec.partner_tag = form == LaneForm::one_way ? 0 : forward ? use.partner_tag : use.tag;
  spec.form = form;
  spec.channel = channel;
  spec.protocol = voyage.protocol;
  spec.slot_bytes = is_small(voyage.protocol) ? kLines * kLineBytes : kBulkBytes;
  while ((1U << spec.slot_shift) < voyage.loop.slots) ++spec.slot_shift;
  return spec;
}

Wires::~Wires() {
  for (auto& [spec, wire] : wires_) std::pmr::polymorphic_allocator<>(memory_).delete_object(wire);
  for (const auto& [memory, bytes] : taken_) lanes_->deallocate(memory, bytes, kWordsBytes);
}

LaneState* Wires::end(const LaneSpec& spec, bool forward, bool writes) {
  Wire*& wire = wires_[spec];
  if (wire == nullptr) {
    wire = std::pmr::polymorphic_allocator<>(memory_).new_object<Wire>();
    const LanePair pair = lay(spec);
    wire->writing.view = wire->reading.view = pair.forward;
    wire->partner_writing.view = wire->partner_reading.view = pair.partner;
  }
  if (forward) return writes ? &wire->writing : &wire->reading;
  return writes ? &wire->partner_writing : &wire->partner_reading;
}

LanePair Wires::lay(const LaneSpec& spec) {
  if (lanes_ == nullptr) {
    const LaneAddress address = transport_.create(spec).value();
    return transport_.view(spec, 0, address).value();
  }
  const std::size_t bytes = kControlBytes + slots_bytes(spec);
  auto* memory = static_cast<std::byte*>(lanes_->allocate(bytes, kWordsBytes));
  taken_.emplace_back(memory, bytes);
  return lay_lane(spec, memory, memory + kControlBytes);
}

}  // namespace tutti::test
