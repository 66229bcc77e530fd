#include "src/wire/codec.h"

#include "src/wire/group.h"

namespace tutti {
namespace {

template <class Form>
void encode(const float* values, std::uint64_t count, std::byte* wire, WireRange range, const Dither* dither) {
  for (std::uint64_t i = 0; i < count; i += kWireGroup, wire += kGroupBytes<Form>) {
    const auto length = static_cast<std::uint32_t>(count - i < kWireGroup ? count - i : kWireGroup);
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, dither->first + i};
    encode_group<Form>(values + i, length, wire, range, dither == nullptr ? nullptr : &here);
  }
}

template <class Form>
void decode(const std::byte* wire, std::uint64_t count, float* values) {
  for (std::uint64_t i = 0; i < count; i += kWireGroup, wire += kGroupBytes<Form>) {
    const auto length = static_cast<std::uint32_t>(count - i < kWireGroup ? count - i : kWireGroup);
    decode_group<Form>(wire, length, values + i);
  }
}

}  // namespace

// The least steps of the others keep decoded values normal, so that no rank flushes what another does not.
WireRange range_of(DataType type) {
  switch (type) {
    case DataType::float16: return {65504.0f, 0x1p-22f, type};
    case DataType::bfloat16: return {0x1.fep127f, 0x1p-124f, type};
    case DataType::float32: return {0x1.fffffep127f, 0x1p-124f, type};
    default: break;
  }
  assertion_failed("a type that is encoded", __FILE__, __LINE__);
}

Codec find_codec(WireFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) { return Codec{encode<Form>, decode<Form>}; });
}

}  // namespace tutti
