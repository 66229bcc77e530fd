#include "tests/executor/test_lanes.h"

#include "tests/executor/engine.h"
#include "transports/lay_lane.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSimpleBytes = 256;
constexpr std::uint32_t kLl = 8;
constexpr std::uint32_t kLl128 = 4;

}  // namespace

std::uint64_t slot_elements(const TestCall& test_call) {
  const std::uint64_t element = test_call.element_bytes;
  if (test_call.protocol == Protocol::simple) return kSimpleBytes / element;
  if (test_call.protocol == Protocol::ll128) return ll128_capacity(kLl128 * kLl128LineBytes) / element;
  return (test_call.engine != nullptr ? ll_words_capacity(kLl * kLineBytes) : kLl * kLineData) / element;
}

LaneSpec spec_of(const LaneUse& use, Rank self, const TestCall& test_call, std::uint16_t channel) {
  const bool sends = use.direction == Direction::sends;
  const LaneForm form = test_call.forms == Forms::one_way ? LaneForm::one_way : use.form;
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
  spec.protocol = test_call.protocol;
  spec.slot_bytes = has_inline_flags(test_call.protocol) ? kLl * kLineBytes : kSimpleBytes;
  while ((1U << spec.slot_shift) < test_call.loop.slots) ++spec.slot_shift;
  return spec;
}

TestLanes::~TestLanes() {
  for (auto& [spec, lane] : lanes_made_) std::pmr::polymorphic_allocator<>(memory_).delete_object(lane);
  for (const auto& [memory, bytes] : taken_) lanes_->deallocate(memory, bytes, kWordsBytes);
}

LaneState* TestLanes::end(const LaneSpec& spec, bool forward, bool writes) {
  TestLane*& lane = lanes_made_[spec];
  if (lane == nullptr) {
    lane = std::pmr::polymorphic_allocator<>(memory_).new_object<TestLane>();
    const LanePair pair = lay(spec);
    lane->writing.view = lane->reading.view = pair.forward;
    lane->partner_writing.view = lane->partner_reading.view = pair.partner;
  }
  if (forward) return writes ? &lane->writing : &lane->reading;
  return writes ? &lane->partner_writing : &lane->partner_reading;
}

LanePair TestLanes::lay(const LaneSpec& spec) {
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
