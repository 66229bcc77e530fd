// Whole groups, written for GNU vectors and compiled once for each instruction set. An Isa is a type without linkage
// outside of its source file, which keeps every instance of these templates inside it, too. It says
//   kBytes               how wide its registers are.
#pragma once

#include "src/base/vector.h"
#include "src/wire/codec_kernels.h"
#include "src/wire/forms.h"

namespace tutti {

template <class Isa, class Form>
class GroupKernel {
 public:
  static void encode(const float* values, std::uint64_t count, std::byte* wire, WireRange range, const Dither* dither) {
    if (dither != nullptr) return encode_singly<Form>(values, count, wire, range, dither);
    std::uint64_t i = 0;
    for (; count - i >= kWireGroup; i += kWireGroup, wire += kGroupBytes<Form>) encode_whole(values + i, wire, range);
    if (i == count) return;
    float padded[kWireGroup] = {};
    std::memcpy(padded, values + i, (count - i) * sizeof(float));
    encode_whole(padded, wire, range);
  }

  static void decode(const std::byte* wire, std::uint64_t count, float* values) {
    std::uint64_t i = 0;
    for (; count - i >= kWireGroup; i += kWireGroup, wire += kGroupBytes<Form>) decode_whole(wire, values + i);
    if (i == count) return;
    float padded[kWireGroup];
    decode_whole(wire, padded);
    std::memcpy(values + i, padded, (count - i) * sizeof(float));
  }

 private:
  static constexpr unsigned kLanes = Isa::kBytes / sizeof(float);
  using Real = Vector<float, kLanes>;
  using Word = Vector<std::uint32_t, kLanes>;
  static constexpr int kBits = Form::kCodeBits;
  // Codes narrower than a byte are packed from bytes.
  using Code = std::conditional_t<kBits == 16, std::uint16_t, std::uint8_t>;

  TUTTI_KERNEL static Real load_values(const float* from) {
    return load<float, kLanes>(reinterpret_cast<const std::byte*>(from));
  }

  template <unsigned kCount>
  TUTTI_KERNEL static std::uint32_t largest_of(Vector<std::int32_t, kCount> magnitudes) {
    if constexpr (kCount == 1) {
      return static_cast<std::uint32_t>(magnitudes[0]);
    } else {
      using Half = Vector<std::int32_t, kCount / 2>;
      struct Halves {
        Half low, high;
      };
      const auto halves = __builtin_bit_cast(Halves, magnitudes);
      return largest_of<kCount / 2>(halves.low < halves.high ? halves.high : halves.low);
    }
  }

  TUTTI_KERNEL static std::uint32_t largest_in(const float* block) {
    if constexpr (Form::kScaleBytes == 0) {
      return 0;
    } else {
      // Magnitudes have no sign bit, and registers compare signed words.
      using Signed = Vector<std::int32_t, kLanes>;
      Signed largest = {};
#pragma GCC unroll 8
      for (std::uint32_t i = 0; i < Form::kBlock; i += kLanes) {
        const auto magnitude =
            __builtin_bit_cast(Signed, load_values(block + i)) & static_cast<std::int32_t>(kMagnitude);
        largest = largest < magnitude ? magnitude : largest;
      }
      return largest_of<kLanes>(largest);
    }
  }

  TUTTI_KERNEL static void encode_whole(const float* values, std::byte* wire, const WireRange& range) {
    Code unpacked[kBits < 8 ? kWireGroup : 1];
    std::byte* codes = kBits < 8 ? reinterpret_cast<std::byte*>(unpacked) : wire + kScalesBytes<Form>;
    for (std::uint32_t block = 0; block < kWireGroup; block += Form::kBlock) {
      BlockScale scale = {};
      if constexpr (Form::kScaleBytes != 0) {
        const std::uint32_t largest = largest_in(values + block);
        // Rare, and not worth its instructions in registers.
        if (!Form::kSpoils && largest >= limit_of(range))
          return encode_singly<Form>(values, kWireGroup, wire, range, nullptr);
        scale = Form::scale(largest, range);
        const auto bits = static_cast<std::uint16_t>(scale.bits);
        std::memcpy(wire + block / Form::kBlock * Form::kScaleBytes, &bits, Form::kScaleBytes);
      }
#pragma GCC unroll 8
      for (std::uint32_t i = block; i < block + Form::kBlock; i += kLanes) {
        const Word words = Form::template finite_code<Word>(load_values(values + i), scale, range);
        const auto narrowed = converted<Code, std::uint32_t, kLanes>(words);
        std::memcpy(codes + i * sizeof(Code), &narrowed, sizeof narrowed);
      }
    }
    if constexpr (kBits < 8) pack(codes, wire + kScalesBytes<Form>);
  }

  TUTTI_KERNEL static void decode_whole(const std::byte* wire, float* values) {
    Code unpacked[kBits < 8 ? kWireGroup : 1];
    const std::byte* codes = wire + kScalesBytes<Form>;
    if constexpr (kBits < 8) {
      unpack(codes, reinterpret_cast<std::byte*>(unpacked));
      codes = reinterpret_cast<const std::byte*>(unpacked);
    }
    for (std::uint32_t block = 0; block < kWireGroup; block += Form::kBlock) {
      BlockScale scale = {};
      if constexpr (Form::kScaleBytes != 0) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, wire + block / Form::kBlock * Form::kScaleBytes, Form::kScaleBytes);
        scale = Form::stored(bits);
      }
#pragma GCC unroll 8
      for (std::uint32_t i = block; i < block + Form::kBlock; i += kLanes) {
        const Word words = converted<std::uint32_t, Code, kLanes>(load<Code, kLanes>(codes + i * sizeof(Code)));
        const Real value = Form::template value<Real>(words, scale);
        std::memcpy(values + i, &value, sizeof value);
      }
    }
  }

  // Eight codes of a byte each, in a word, are kBits bytes on the wire. Words are read as they were written just
  // before, one register at a time, so that none waits until the cache has them.
  static constexpr unsigned kWords = kLanes < 8 ? 1 : kLanes / 8;
  using Words = Vector<std::uint64_t, kWords>;
  static constexpr std::uint64_t kPair = 0x0001000100010001u * ((1u << kBits % 8) - 1);
  static constexpr std::uint64_t kFour = 0x0000000100000001u * ((1u << 2 * (kBits % 8)) - 1);
  static constexpr std::uint64_t kEight = (std::uint64_t{1} << 4 * (kBits % 8)) - 1;
  static constexpr unsigned kGap = 8 - kBits % 8;

  // How many bytes of a word of eight codes may be touched: all but for the last.
  TUTTI_KERNEL static constexpr unsigned reach(unsigned word) {
    return kBits == 4 || word == kWireGroup / 8 - 1 ? kBits : sizeof(std::uint64_t);
  }

  TUTTI_KERNEL static void pack(const std::byte* codes, std::byte* wire) {
#pragma GCC unroll 16
    for (unsigned i = 0; i < kWireGroup / 8; i += kWords) {
      Words x = load<std::uint64_t, kWords>(codes + i * 8);
      x = (x & kPair) | (x >> kGap & kPair << kBits);
      x = (x & kFour) | (x >> 2 * kGap & kFour << 2 * kBits);
      x = (x & kEight) | (x >> 4 * kGap & kEight << 4 * kBits);
      for (unsigned k = 0; k < kWords; ++k) {
        const std::uint64_t word = x[k];
        std::memcpy(wire + (i + k) * kBits, &word, reach(i + k));
      }
    }
  }

  TUTTI_KERNEL static void unpack(const std::byte* wire, std::byte* codes) {
#pragma GCC unroll 16
    for (unsigned i = 0; i < kWireGroup / 8; i += kWords) {
      Words x = {};
      for (unsigned k = 0; k < kWords; ++k) {
        std::uint64_t word = 0;
        std::memcpy(&word, wire + (i + k) * kBits, reach(i + k));
        x[k] = word;
      }
      x = (x & kEight) | (x & kEight << 4 * kBits) << 4 * kGap;
      x = (x & kFour) | (x & kFour << 2 * kBits) << 2 * kGap;
      x = (x & kPair) | (x & kPair << kBits) << kGap;
      std::memcpy(codes + i * 8, &x, sizeof x);
    }
  }
};

template <class Isa>
Codec find_codec_in(WireFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) {
    return Codec{GroupKernel<Isa, Form>::encode, GroupKernel<Isa, Form>::decode};
  });
}

}  // namespace tutti
