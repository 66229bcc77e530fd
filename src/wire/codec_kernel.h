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

  TUTTI_KERNEL static BlockScale scale_of(const float* block, const WireRange& range) {
    if constexpr (Form::kScaleBytes == 0) {
      return {};
    } else {
      // Magnitudes have no sign bit, and registers compare signed words.
      using Signed = Vector<std::int32_t, kLanes>;
      Signed largest = {};
#pragma GCC unroll 8
      for (std::uint32_t i = 0; i < Form::kBlock; i += kLanes) {
        const Word word = Form::template bid<Word>(load_values(block + i), range);
        const auto magnitude = __builtin_bit_cast(Signed, word);
        largest = largest < magnitude ? magnitude : largest;
      }
      return Form::scale(largest_of<kLanes>(largest), range);
    }
  }

  TUTTI_KERNEL static void encode_whole(const float* values, std::byte* wire, const WireRange& range) {
    Code unpacked[kBits < 8 ? kWireGroup : 1];
    std::byte* codes = kBits < 8 ? reinterpret_cast<std::byte*>(unpacked) : wire + kScalesBytes<Form>;
    for (std::uint32_t block = 0; block < kWireGroup; block += Form::kBlock) {
      const BlockScale scale = scale_of(values + block, range);
      const auto bits = static_cast<std::uint16_t>(scale.bits);
      std::memcpy(wire + block / Form::kBlock * Form::kScaleBytes, &bits, Form::kScaleBytes);
#pragma GCC unroll 8
      for (std::uint32_t i = block; i < block + Form::kBlock; i += kLanes) {
        const Word words = Form::template code<Word>(load_values(values + i), scale, range);
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

  // Four bytes, in which codes are, to kBits / 2 bytes, and back. The last of them is on its own, since words overlap.
  TUTTI_KERNEL static void pack(const std::byte* codes, std::byte* wire) {
    constexpr unsigned kBytes = kFourBytes<Form>;
    Word words[kWireGroup / 4 / kLanes];
    std::memcpy(words, codes, sizeof words);
    for (Word& word : words) {
      constexpr std::uint32_t kMask = (1u << kBits) - 1;
      word = (word & kMask) | (word >> (8 - kBits) & kMask << kBits) | (word >> 2 * (8 - kBits) & kMask << 2 * kBits) |
             (word >> 3 * (8 - kBits) & kMask << 3 * kBits);
    }
    std::uint32_t fours[kWireGroup / 4];
    std::memcpy(fours, words, sizeof fours);
    constexpr unsigned kLast = kWireGroup / 4 - 1;
    for (unsigned i = 0; i < kLast; ++i) std::memcpy(wire + i * kBytes, &fours[i], sizeof fours[i]);
    std::memcpy(wire + kLast * kBytes, &fours[kLast], kBytes);
  }

  TUTTI_KERNEL static void unpack(const std::byte* wire, std::byte* codes) {
    constexpr unsigned kBytes = kFourBytes<Form>;
    std::uint32_t fours[kWireGroup / 4] = {};
    constexpr unsigned kLast = kWireGroup / 4 - 1;
    for (unsigned i = 0; i < kLast; ++i) std::memcpy(&fours[i], wire + i * kBytes, sizeof fours[i]);
    std::memcpy(&fours[kLast], wire + kLast * kBytes, kBytes);
    Word words[kWireGroup / 4 / kLanes];
    std::memcpy(words, fours, sizeof fours);
    for (Word& word : words) {
      constexpr std::uint32_t kMask = (1u << kBits) - 1;
      word = (word & kMask) | (word & kMask << kBits) << (8 - kBits) | (word & kMask << 2 * kBits) << 2 * (8 - kBits) |
             (word & kMask << 3 * kBits) << 3 * (8 - kBits);
    }
    std::memcpy(codes, words, sizeof words);
  }
};

template <class Isa>
Codec find_codec_in(WireFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) {
    return Codec{GroupKernel<Isa, Form>::encode, GroupKernel<Isa, Form>::decode};
  });
}

}  // namespace tutti
