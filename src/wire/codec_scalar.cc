// One element at a time: what all others are compared with, and what rounds by random numbers.
#include "src/wire/codec_kernels.h"
#include "src/wire/group.h"

namespace tutti {

template <class Form>
void encode_singly(const float* values, std::uint64_t count, std::byte* wire, WireRange range, const Dither* dither) {
  for (std::uint64_t i = 0; i < count; i += kWireGroup, wire += kGroupBytes<Form>) {
    const auto length = static_cast<std::uint32_t>(count - i < kWireGroup ? count - i : kWireGroup);
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, dither->first + i};
    encode_group<Form>(values + i, length, wire, range, dither == nullptr ? nullptr : &here);
  }
}

namespace {

template <class Form>
void decode_singly(const std::byte* wire, std::uint64_t count, float* values) {
  for (std::uint64_t i = 0; i < count; i += kWireGroup, wire += kGroupBytes<Form>) {
    const auto length = static_cast<std::uint32_t>(count - i < kWireGroup ? count - i : kWireGroup);
    decode_group<Form>(wire, length, values + i);
  }
}

Codec find_scalar(WireFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) { return Codec{encode_singly<Form>, decode_singly<Form>}; });
}

}  // namespace

const CodecKernels kCodecScalar = {"scalar", find_scalar};

}  // namespace tutti
