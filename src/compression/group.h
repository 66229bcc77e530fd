// Encoding and decoding of one group by one thread.
#pragma once

#include "src/compression/forms.h"
#include "src/compression/philox.h"

namespace tutti {

template <unsigned kBytes>
TUTTI_NUMERIC void put_little(std::byte* to, std::uint64_t value) {
  for (unsigned i = 0; i < kBytes; ++i) to[i] = static_cast<std::byte>(value >> 8 * i & 0xff);
}
template <unsigned kBytes>
TUTTI_NUMERIC std::uint64_t get_little(const std::byte* from) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < kBytes; ++i) value |= static_cast<std::uint64_t>(from[i]) << 8 * i;
  return value;
}

// Scale of the scale block at `values`. Only its first `count` elements exist.
template <class Form>
TUTTI_HOST_DEVICE BlockScale scale_of(const float* values, std::uint32_t count, const GroupRange& range) {
  if constexpr (Form::kScaleBytes == 0) {
    return {};
  } else {
    std::uint32_t largest = 0;
    for (std::uint32_t i = 0; i < count && i < Form::kScaleBlock; ++i) {
      const auto magnitude = Form::template scale_magnitude<std::uint32_t>(values[i], range);
      largest = magnitude > largest ? magnitude : largest;
    }
    return Form::scale(largest, range);
  }
}

// Encodes a group. Elements from `count` on count as 0. `dither` refers to the group's first element; null means round
// to nearest.
template <class Form>
TUTTI_HOST_DEVICE void encode_group(const float* values, std::uint32_t count, std::byte* encoded,
                                    const GroupRange& range, const Dither* dither) {
  for (std::uint32_t scale_block = 0; scale_block < kCompressionGroup; scale_block += Form::kScaleBlock) {
    const std::uint32_t left = count > scale_block ? count - scale_block : 0;
    const BlockScale scale = scale_of<Form>(values + scale_block, left, range);
    if constexpr (Form::kScaleBytes != 0)
      put_little<Form::kScaleBytes>(encoded + scale_block / Form::kScaleBlock * Form::kScaleBytes, scale.bits);
    for (std::uint32_t i = scale_block; i < scale_block + Form::kScaleBlock; i += 4) {
      std::uint64_t four = 0;
      for (std::uint32_t k = 0; k < 4; ++k) {
        const float x = i + k < count ? values[i + k] : 0;
        const std::uint32_t code =
            dither == nullptr ? Form::template code<std::uint32_t>(x, scale, range)
                              : Form::dithered(x, scale, range, philox_word(dither->first + i + k, dither->seed));
        four |= std::uint64_t{code} << Form::kCodeBits * k;
      }
      put_little<kFourBytes<Form>>(encoded + kScalesBytes<Form> + i / 4 * kFourBytes<Form>, four);
    }
  }
}

// Decodes the first `count` values of a group.
template <class Form>
TUTTI_HOST_DEVICE void decode_group(const std::byte* encoded, std::uint32_t count, float* values) {
  for (std::uint32_t scale_block = 0; scale_block < count; scale_block += Form::kScaleBlock) {
    BlockScale scale = {};
    if constexpr (Form::kScaleBytes != 0) {
      const std::byte* from = encoded + scale_block / Form::kScaleBlock * Form::kScaleBytes;
      scale = Form::stored(static_cast<std::uint32_t>(get_little<Form::kScaleBytes>(from)));
    }
    for (std::uint32_t i = scale_block; i < scale_block + Form::kScaleBlock && i < count; i += 4) {
      const std::uint64_t four = get_little<kFourBytes<Form>>(encoded + kScalesBytes<Form> + i / 4 * kFourBytes<Form>);
      for (std::uint32_t k = 0; k < 4 && i + k < count; ++k) {
        const auto code = static_cast<std::uint32_t>(four >> Form::kCodeBits * k) & ((1u << Form::kCodeBits) - 1);
        values[i + k] = Form::template value<float>(code, scale);
      }
    }
  }
}

}  // namespace tutti
