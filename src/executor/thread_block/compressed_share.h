// One thread's share of a group of elements: as in memory, or encoded as in a message. Host and device compile this
// source.
#pragma once

#include "src/compression/forms.h"
#include "src/compression/philox.h"
#include "src/executor/thread_block/operands.h"
#include "src/executor/thread_block/scalar.h"

#if defined(__CUDA_ARCH__)
#include "src/executor/thread_block/group_threads_cuda.h"
#else
#include "src/executor/thread_block/group_threads_portable.h"
#endif

namespace tutti {

// Position of a share.
struct SharePosition {
  std::uint64_t group = 0;
  std::uint32_t at = 0;     // Element within the group.
  std::uint32_t count = 0;  // Existing elements of the share; missing ones count as zero.
  bool there = false;       // The group exists.

  TUTTI_HOST_DEVICE static SharePosition of(std::uint64_t group, std::uint32_t at, std::uint64_t count,
                                            std::uint32_t share) {
    const std::uint64_t begin = group * kCompressionGroup + at;
    const std::uint64_t left = begin < count ? count - begin : 0;
    return {group, at, static_cast<std::uint32_t>(left < share ? left : share), group * kCompressionGroup < count};
  }
  TUTTI_HOST_DEVICE std::uint64_t begin() const { return group * kCompressionGroup + at; }
};

// Converts memory bits of an element to float, with canonical NaNs for 16-bit types, and back.
TUTTI_NUMERIC float value_of(DataType type, std::uint32_t bits) {
  if (type == DataType::float32) return __builtin_bit_cast(float, bits);
  const auto half = static_cast<std::uint16_t>(bits);
  return one_nan<std::uint32_t>(type == DataType::float16 ? KernelScalar::widened<Float16>(half)
                                                          : KernelScalar::widened<BFloat16>(half));
}
TUTTI_NUMERIC std::uint32_t bits_of(DataType type, float value) {
  if (type == DataType::float32) return __builtin_bit_cast(std::uint32_t, value);
  return type == DataType::float16 ? KernelScalar::narrowed<Float16>(value) : KernelScalar::narrowed<BFloat16>(value);
}

TUTTI_NUMERIC bool is_finite(float value) {
  return (__builtin_bit_cast(std::uint32_t, value) & kMagnitude) < kInfinity;
}

// Four elements, accessed at once.
template <typename Unit>
struct alignas(4 * sizeof(Unit)) Four {
  Unit units[4];
};

template <class Form, class Threads>
struct CompressedShare {
  static constexpr std::uint32_t kCount = Threads::template kShare<Form::kScaleBlock>;

  // From memory: the bits of each element. From a message: the codes of four elements in words[4 * q], and bits beyond
  // 32 in the next word.
  std::uint32_t words[kCount];
  std::uint32_t scale;  // Encoded scale of the scale block.

  template <typename Unit>
  TUTTI_HOST_DEVICE void load(const std::byte* memory, const SharePosition& spot) {
    const std::byte* from = memory + spot.begin() * sizeof(Unit);
    if (spot.count == kCount && is_aligned<Four<Unit>>(from)) {
      for (std::uint32_t i = 0; i < kCount; i += 4) {
        const auto four = load_unit<Four<Unit>>(from + i * sizeof(Unit));
        for (std::uint32_t k = 0; k < 4; ++k) words[i + k] = four.units[k];
      }
      return;
    }
    for (std::uint32_t i = 0; i < kCount; ++i)
      words[i] = i < spot.count ? load_unit<Unit>(from + i * sizeof(Unit)) : Unit{};
  }

  template <typename Unit, typename Make>
  TUTTI_HOST_DEVICE static void store(std::byte* memory, const SharePosition& spot, Make&& make) {
    std::byte* to = memory + spot.begin() * sizeof(Unit);
    Unit units[kCount];
    for (std::uint32_t i = 0; i < kCount; ++i) units[i] = make(i);
    if (spot.count == kCount && is_aligned<Four<Unit>>(to)) {
      for (std::uint32_t i = 0; i < kCount; i += 4)
        store_unit(to + i * sizeof(Unit), Four<Unit>{{units[i], units[i + 1], units[i + 2], units[i + 3]}});
      return;
    }
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (i < spot.count) store_unit(to + i * sizeof(Unit), units[i]);
    }
  }

  TUTTI_HOST_DEVICE void receive(const std::byte* message, const SharePosition& spot) {
    if (!spot.there) return;
    const std::byte* group = message + spot.group * kGroupBytes<Form>;
    if constexpr (Form::kScaleBytes != 0) scale = load_unit<ScaleBits>(group + scale_at(spot));
    for (std::uint32_t i = 0; i < kCount; i += 4) {
      const std::byte* from = group + codes_at(spot.at + i);
      std::uint64_t four = 0;
      for (std::uint32_t k = 0; k < kFourBytes<Form>; k += sizeof(Part))
        four |= static_cast<std::uint64_t>(load_unit<Part>(from + k)) << 8 * k;
      put(i, four);
    }
  }

  // The thread with the first element of a scale block stores the scale.
  TUTTI_HOST_DEVICE void send(std::byte* message, const SharePosition& spot) const {
    if (!spot.there) return;
    std::byte* group = message + spot.group * kGroupBytes<Form>;
    if constexpr (Form::kScaleBytes != 0) {
      if (spot.at % Form::kScaleBlock == 0) store_unit(group + scale_at(spot), static_cast<ScaleBits>(scale));
    }
    for (std::uint32_t i = 0; i < kCount; i += 4) {
      std::byte* to = group + codes_at(spot.at + i);
      const std::uint64_t four = get(i);
      for (std::uint32_t k = 0; k < kFourBytes<Form>; k += sizeof(Part))
        store_unit(to + k, static_cast<Part>(four >> 8 * k));
    }
  }

  TUTTI_HOST_DEVICE void encode(const float* values, const GroupRange& range, const Threads& threads) {
    encode_by(values, range, threads, [&](std::uint32_t i, const BlockScale& scaling) {
      return Form::template code<std::uint32_t>(values[i], scaling, range);
    });
  }
  // Stochastic rounding; `dither` refers to the share's first element.
  TUTTI_HOST_DEVICE void encode(const float* values, const GroupRange& range, const Threads& threads,
                                const Dither& dither) {
    encode_by(values, range, threads, [&](std::uint32_t i, const BlockScale& scaling) {
      return Form::dithered(values[i], scaling, range, philox_word(dither.first + i, dither.seed));
    });
  }

  TUTTI_HOST_DEVICE void decode(float* values) const {
    BlockScale scaling = {};
    if constexpr (Form::kScaleBytes != 0) scaling = Form::stored(scale);
    for (std::uint32_t i = 0; i < kCount; i += 4) {
      const Codes four = get(i);
      for (std::uint32_t k = 0; k < 4; ++k) {
        const auto code = static_cast<std::uint32_t>(four >> Form::kCodeBits * k) & ((1U << Form::kCodeBits) - 1);
        values[i + k] = Form::template value<float>(code, scaling);
      }
    }
  }

 private:
  // Type of four codes, and the unit of access: groups have no larger alignment.
  using Codes = UnsignedOf<Form::kCodeBits == 16 ? 8 : 4>;
  static constexpr std::uint32_t kAlike = kGroupBytes<Form> | kScalesBytes<Form> | kFourBytes<Form>;
  using Part = UnsignedOf<(kAlike & (~kAlike + 1))>;
  using ScaleBits = UnsignedOf<Form::kScaleBytes == 0 ? 1 : Form::kScaleBytes>;

  // code(i, scale) returns the code of element i of the share.
  template <typename Code>
  TUTTI_NUMERIC void encode_by(const float* values, const GroupRange& range, const Threads& threads, Code&& code) {
    BlockScale scaling = {};
    if constexpr (Form::kScaleBytes != 0) {
      std::uint32_t largest = 0;
      for (std::uint32_t i = 0; i < kCount; ++i) {
        const auto magnitude = Form::template scale_magnitude<std::uint32_t>(values[i], range);
        largest = magnitude > largest ? magnitude : largest;
      }
      scaling = Form::scale(threads.template largest<Form::kScaleBlock>(largest), range);
      scale = scaling.bits;
    }
    for (std::uint32_t i = 0; i < kCount; i += 4) {
      Codes four = 0;
      for (std::uint32_t k = 0; k < 4; ++k) four |= Codes{code(i + k, scaling)} << Form::kCodeBits * k;
      put(i, four);
    }
  }

  template <typename Unit>
  TUTTI_HOST_DEVICE static bool is_aligned(const std::byte* memory) {
    return reinterpret_cast<std::uintptr_t>(memory) % alignof(Unit) == 0;
  }
  TUTTI_HOST_DEVICE static std::uint32_t scale_at(const SharePosition& spot) {
    return spot.at / Form::kScaleBlock * Form::kScaleBytes;
  }
  TUTTI_HOST_DEVICE static std::uint32_t codes_at(std::uint32_t element) {
    return kScalesBytes<Form> + element / 4 * kFourBytes<Form>;
  }
  TUTTI_HOST_DEVICE Codes get(std::uint32_t i) const {
    if constexpr (sizeof(Codes) == 4) {
      return words[i];
    } else {
      return words[i] | static_cast<std::uint64_t>(words[i + 1]) << 32;
    }
  }
  TUTTI_HOST_DEVICE void put(std::uint32_t i, std::uint64_t four) {
    words[i] = static_cast<std::uint32_t>(four);
    if constexpr (sizeof(Codes) == 8) words[i + 1] = static_cast<std::uint32_t>(four >> 32);
  }
};

}  // namespace tutti
