// Scalar codec: the reference for the vector codecs, and the only implementation of stochastic rounding.
#include "src/compression/codec_kernels.h"
#include "src/compression/group.h"

namespace tutti {

template <class Form>
void encode_singly(const float* values, std::uint64_t count, std::byte* encoded, GroupRange range,
                   const Dither* dither) {
  for (std::uint64_t i = 0; i < count; i += kCompressionGroup, encoded += kGroupBytes<Form>) {
    const auto length = static_cast<std::uint32_t>(count - i < kCompressionGroup ? count - i : kCompressionGroup);
    const Dither here = dither == nullptr ? Dither{} : Dither{dither->seed, dither->first + i};
    encode_group<Form>(values + i, length, encoded, range, dither == nullptr ? nullptr : &here);
  }
}

namespace {

template <class Form>
void decode_singly(const std::byte* encoded, std::uint64_t count, float* values) {
  for (std::uint64_t i = 0; i < count; i += kCompressionGroup, encoded += kGroupBytes<Form>) {
    const auto length = static_cast<std::uint32_t>(count - i < kCompressionGroup ? count - i : kCompressionGroup);
    decode_group<Form>(encoded, length, values + i);
  }
}

Codec find_scalar(CompressionFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) { return Codec{encode_singly<Form>, decode_singly<Form>}; });
}

}  // namespace

const CodecKernels kCodecScalar = {"scalar", find_scalar};

}  // namespace tutti
