// All forms, and the layout of an encoded group: the scales of its scale blocks, then the codes. Four codes fill
// kCodeBits / 2 bytes. Little-endian.
#pragma once

#include "src/compression/form.h"

namespace tutti {

template <class Form>
inline constexpr std::uint32_t kScalesBytes = kCompressionGroup / Form::kScaleBlock* Form::kScaleBytes;
template <class Form>
inline constexpr std::uint32_t kFourBytes = Form::kCodeBits / 2;
template <class Form>
inline constexpr std::uint32_t kGroupBytes = kScalesBytes<Form> + kCompressionGroup / 4 * kFourBytes<Form>;

// Calls visitor(Type<Form>()) with the form of `format`, which must not be `none`. This is the only switch over
// formats.
template <typename Visitor>
TUTTI_HOST_DEVICE decltype(auto) visit_form(CompressionFormat format, Visitor&& visitor) {
  switch (format) {
    case CompressionFormat::none: break;
    case CompressionFormat::fp16: return visitor(Type<HalfForm<Float16>>());
    case CompressionFormat::bf16: return visitor(Type<HalfForm<BFloat16>>());
    case CompressionFormat::fp8_e4m3: return visitor(Type<Float8Form<Float8E4M3>>());
    case CompressionFormat::fp8_e5m2: return visitor(Type<Float8Form<Float8E5M2>>());
    case CompressionFormat::mxfp8: return visitor(Type<MicroForm>());
    case CompressionFormat::int8: return visitor(Type<IntegerForm<8, 128>>());
    case CompressionFormat::int8_b32: return visitor(Type<IntegerForm<8, 32>>());
    case CompressionFormat::int6: return visitor(Type<IntegerForm<6, 32>>());
    case CompressionFormat::int4: return visitor(Type<IntegerForm<4, 32>>());
  }
  __builtin_unreachable();
}

}  // namespace tutti
