// Encodes and decodes whole groups with GNU vectors. Compiled once per instruction set. Isa (src/base/vector_*.h)
// provides:
// - kBytes: the register width;
// - words(x), packed<T>(x): conversions between 32-bit words and narrower integers of as many lanes;
// - widened<T, kLanes>(bits), narrowed<T, kLanes>(value): conversions of narrow floats.
#pragma once

#include "src/base/vector.h"
#include "src/compression/codec_kernels.h"
#include "src/compression/forms.h"
#include "src/compression/packing.h"

namespace tutti {

template <class Isa, class Form>
class GroupKernel {
 public:
  static constexpr unsigned kLanes = Isa::kBytes / sizeof(float);
  static constexpr unsigned kRegisters = kCompressionGroup / kLanes;
  using Real = Vector<float, kLanes>;
  using Word = Vector<std::uint32_t, kLanes>;
  // The 128 values of a group, in registers if the instruction set has enough.
  struct Values {
    Real at[kRegisters];
  };

  static void encode(const float* values, std::uint64_t count, std::byte* encoded, GroupRange range,
                     const Dither* dither) {
    if (dither != nullptr) return encode_singly<Form>(values, count, encoded, range, dither);
    std::uint64_t i = 0;
    for (; count - i >= kCompressionGroup; i += kCompressionGroup, encoded += kGroupBytes<Form>) {
      const Values group = load_values(values + i);
      write(group, encoded, range);
    }
    if (i == count) return;
    float padded[kCompressionGroup] = {};
    std::memcpy(padded, values + i, (count - i) * sizeof(float));
    encode(padded, kCompressionGroup, encoded, range, nullptr);
  }

  static void decode(const std::byte* encoded, std::uint64_t count, float* values) {
    std::uint64_t i = 0;
    for (; count - i >= kCompressionGroup; i += kCompressionGroup, encoded += kGroupBytes<Form>) {
      if constexpr (Form::kScaleBytes == 0) store_values(read(encoded), values + i);
      else if (is_finite(encoded)) store_values(read_as<true>(encoded), values + i);
      else decode_apart(encoded, values + i);
    }
    if (i == count) return;
    float padded[kCompressionGroup];
    decode(encoded, kCompressionGroup, padded);
    std::memcpy(values + i, padded, (count - i) * sizeof(float));
  }

  TUTTI_KERNEL static Values load_values(const float* from) {
    Values values;
#pragma GCC unroll 16
    for (unsigned r = 0; r < kRegisters; ++r)
      values.at[r] = load<float, kLanes>(reinterpret_cast<const std::byte*>(from + r * kLanes));
    return values;
  }
  TUTTI_KERNEL static void store_values(const Values& values, float* to) {
#pragma GCC unroll 16
    for (unsigned r = 0; r < kRegisters; ++r) std::memcpy(to + r * kLanes, &values.at[r], sizeof(Real));
  }

  // Decodes a group.
  TUTTI_KERNEL static Values read(const std::byte* encoded) { return read_as<false>(encoded); }

  // Encodes a group.
  TUTTI_KERNEL static void write(const Values& values, std::byte* encoded, const GroupRange& range) {
    Scales scales;
    if constexpr (Form::kScaleBytes != 0) {
      const Four largest = largest_of_blocks(values);
      // Non-finite values are rare; a vector path for them is not worthwhile.
      if (any_beyond(largest, limit_of(range))) {
        float group[kCompressionGroup];
        store_values(values, group);
        return encode_singly<Form>(group, kCompressionGroup, encoded, range, nullptr);
      }
      scales = new_scales(largest, encoded, range);
    }
    Code unpacked[kBits < 8 ? kCompressionGroup : 1];
    std::byte* const codes = kBits < 8 ? reinterpret_cast<std::byte*>(unpacked) : encoded + kScalesBytes<Form>;
    store_codes(values, scales, range, codes);
    if constexpr (kBits < 8) Packing<Isa, kBits>::pack(codes, encoded + kScalesBytes<Form>);
  }

 private:
  static constexpr int kBits = Form::kCodeBits;
  // Codes narrower than a byte are computed as bytes and packed afterwards.
  using Code = std::conditional_t<kBits == 16, std::uint16_t, std::uint8_t>;
  using CodeRegister = Vector<Code, kLanes>;

  // Scales of up to four scale blocks, one per lane. A format with one scale block repeats its scale in all lanes.
  static constexpr unsigned kScaleBlocks = kCompressionGroup / Form::kScaleBlock;
  static_assert(kScaleBlocks == 1 || kScaleBlocks == 4);
  using Four = Vector<std::uint32_t, 4>;
  using FourReals = Vector<float, 4>;
  struct Scales {
    FourReals step = {}, inverse = {};
    TUTTI_KERNEL BlockScale of(unsigned reg) const {
      const unsigned scale_block = reg * kLanes / Form::kScaleBlock;
      return {0, step[scale_block], inverse[scale_block], ~0u};
    }
  };

  // Magnitudes have no sign bit, so signed comparison is correct. Vector units lack unsigned comparison.
  using Magnitudes = Vector<std::int32_t, kLanes>;
  TUTTI_KERNEL static Magnitudes larger(Magnitudes a, Magnitudes b) { return a < b ? b : a; }
  // Lane-wise maximum of each lane and the lane kDistance away.
  template <int kDistance>
  TUTTI_KERNEL static Magnitudes larger_of_lanes(Magnitudes a) {
    Magnitudes other;
    for (int k = 0; k < static_cast<int>(kLanes); ++k) other[k] = k ^ kDistance;
    return larger(a, __builtin_shuffle(a, other));
  }
  // Reduces two registers to one. In each four lanes: the maxima of the first and second halves of `a`, then those of
  // `b`, in groups of kWidth lanes.
  template <int kWidth>
  TUTTI_KERNEL static Magnitudes larger_of_halves(Magnitudes a, Magnitudes b) {
    Magnitudes low, high;
    for (int k = 0; k < static_cast<int>(kLanes); ++k) {
      const int at = k % 4 / (2 * kWidth) * kWidth + k % kWidth + (k / kWidth % 2) * static_cast<int>(kLanes);
      low[k] = k / 4 * 4 + at;
      high[k] = low[k] + 2;
    }
    return larger(__builtin_shuffle(a, b, low), __builtin_shuffle(a, b, high));
  }

  TUTTI_KERNEL static Four largest_of_blocks(const Values& values) {
    constexpr unsigned kEach = kRegisters / kScaleBlocks;
    Magnitudes largest[kScaleBlocks];
#pragma GCC unroll 4
    for (unsigned scale_block = 0; scale_block < kScaleBlocks; ++scale_block) {
      Magnitudes of_many[kEach < 4 ? kEach : 4];  // Several accumulators shorten the dependency chain.
      constexpr unsigned kMany = sizeof of_many / sizeof of_many[0];
#pragma GCC unroll 16
      for (unsigned r = 0; r < kEach; ++r) {
        const auto bits = __builtin_bit_cast(Magnitudes, values.at[scale_block * kEach + r]);
        const Magnitudes magnitudes = bits & static_cast<std::int32_t>(kMagnitude);
        of_many[r % kMany] = r < kMany ? magnitudes : larger(of_many[r % kMany], magnitudes);
      }
      largest[scale_block] = of_many[0];
#pragma GCC unroll 4
      for (unsigned k = 1; k < kMany; ++k) largest[scale_block] = larger(largest[scale_block], of_many[k]);
    }
    Magnitudes all;
    if constexpr (kScaleBlocks == 4) {
      all =
          larger_of_halves<2>(larger_of_halves<1>(largest[0], largest[1]), larger_of_halves<1>(largest[2], largest[3]));
    } else {
      all = larger_of_lanes<1>(larger_of_lanes<2>(largest[0]));
    }
    if constexpr (kLanes > 4) all = larger_of_lanes<4>(all);
    if constexpr (kLanes > 8) all = larger_of_lanes<8>(all);
    struct Parts {
      Four four[kLanes / 4];
    };
    return __builtin_bit_cast(Parts, all).four[0];
  }

  // True if any lane of a comparison result is set.
  template <typename Compared>
  TUTTI_KERNEL static bool any_of(Compared lanes) {
    struct Words {
      std::uint64_t at[sizeof lanes / sizeof(std::uint64_t)];
    };
    const auto words = __builtin_bit_cast(Words, lanes);
    std::uint64_t any = 0;
    for (const std::uint64_t word : words.at) any |= word;
    return any != 0;
  }

  TUTTI_KERNEL static bool any_beyond(Four magnitudes, std::uint32_t limit) {
    return any_of(~below(magnitudes, limit));
  }

  TUTTI_KERNEL static Scales new_scales(Four largest, std::byte* encoded, const GroupRange& range) {
    const auto scales = Form::template finite_scale<FourReals>(largest, range);
    using Stored = std::conditional_t<Form::kScaleBytes == 2, std::uint16_t, std::uint8_t>;
    const auto bits = converted<Stored, std::uint32_t, 4>(scales.bits);
    std::memcpy(encoded, &bits, kScalesBytes<Form>);
    return {scales.step, scales.inverse};
  }

  TUTTI_KERNEL static Scales stored_scales(const std::byte* encoded) {
    Scales scales;
#pragma GCC unroll 4
    for (unsigned scale_block = 0; scale_block < kScaleBlocks; ++scale_block) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, encoded + scale_block * Form::kScaleBytes, Form::kScaleBytes);
      scales.step[scale_block] = Form::stored(bits).step;
    }
    return scales;
  }

  // Some instruction sets pack four registers of words to bytes at once.
  static constexpr bool kFourAtOnce = sizeof(Code) == 1 && requires(Word x) { Isa::packed_four(x, x, x, x); };

  TUTTI_KERNEL static void store_codes(const Values& values, const Scales& scales, const GroupRange& range,
                                       std::byte* codes) {
    if constexpr (kFourAtOnce) {
#pragma GCC unroll 4
      for (unsigned r = 0; r < kRegisters; r += 4) {
        Word words[4];
#pragma GCC unroll 4
        for (unsigned k = 0; k < 4; ++k)
          words[k] = Form::template finite_code<Word>(values.at[r + k], scales.of(r + k), range);
        const auto bytes = Isa::packed_four(words[0], words[1], words[2], words[3]);
        std::memcpy(codes + r * kLanes, &bytes, sizeof bytes);
      }
    } else {
#pragma GCC unroll 16
      for (unsigned r = 0; r < kRegisters; ++r) {
        const CodeRegister code = code_of(values.at[r], scales.of(r), range);
        std::memcpy(codes + r * sizeof code, &code, sizeof code);
      }
    }
  }

  // Not inlined, so that the common path keeps its values in registers.
  [[gnu::noinline]] static void decode_apart(const std::byte* encoded, float* values) {
    store_values(read(encoded), values);
  }

  // True if neither a scale nor a code is infinite or NaN.
  TUTTI_KERNEL static bool is_finite(const std::byte* encoded) {
    const Four steps = __builtin_bit_cast(Four, stored_scales(encoded).step) & kMagnitude;
    return !any_beyond(steps, kInfinity) && !any_special(encoded + kScalesBytes<Form>);
  }
  TUTTI_KERNEL static bool any_special(const std::byte* codes) {
    if constexpr (requires { Form::kMaxFinite; }) {
      using Bytes = Vector<std::int8_t, Isa::kBytes>;
      Bytes special = {};
#pragma GCC unroll 16
      for (unsigned i = 0; i < kCompressionGroup; i += Isa::kBytes)
        special |= (load<std::int8_t, Isa::kBytes>(codes + i) & 0x7f) > static_cast<std::int8_t>(Form::kMaxFinite);
      return any_of(special);
    } else {
      return false;
    }
  }

  template <bool kFinite>
  TUTTI_KERNEL static Values read_as(const std::byte* encoded) {
    Scales scales;
    if constexpr (Form::kScaleBytes != 0) scales = stored_scales(encoded);
    const std::byte* codes = encoded + kScalesBytes<Form>;
    Code unpacked[kBits < 8 ? kCompressionGroup : 1];
    if constexpr (kBits < 8) {
      Packing<Isa, kBits>::unpack(codes, reinterpret_cast<std::byte*>(unpacked));
      codes = reinterpret_cast<const std::byte*>(unpacked);
    }
    Values values;
#pragma GCC unroll 16
    for (unsigned r = 0; r < kRegisters; ++r)
      values.at[r] = meaning<kFinite>(load<Code, kLanes>(codes + r * kLanes * sizeof(Code)), scales.of(r));
    return values;
  }

  TUTTI_KERNEL static CodeRegister code_of(Real x, const BlockScale& scale, const GroupRange& range) {
    if constexpr (std::is_same_v<Form, HalfForm<Float16>>) {
      return Isa::template narrowed<Float16, kLanes>(Form::template held<Word>(x, range));
    } else {
      return Isa::template packed<Code>(Form::template finite_code<Word>(x, scale, range));
    }
  }
  template <bool kFinite>
  TUTTI_KERNEL static Real meaning(CodeRegister code, const BlockScale& scale) {
    if constexpr (std::is_same_v<Form, HalfForm<Float16>>) {
      return one_nan<Word>(Isa::template widened<Float16, kLanes>(code));
    } else if constexpr (kFinite && requires { typename Form::Element; }) {
      return Isa::template widened_finite<typename Form::Element, kLanes>(code) * scale.step;
    } else if constexpr (kFinite) {
      return Form::template finite_value<Real>(Word(Isa::words(code)), scale);
    } else if constexpr (requires { typename Form::Element; }) {
      return one_nan<Word>(Isa::template widened<typename Form::Element, kLanes>(code) * scale.step);
    } else {
      return Form::template value<Real>(Word(Isa::words(code)), scale);
    }
  }
};

template <class Isa>
Codec find_codec_in(CompressionFormat format) {
  return visit_form(format, []<class Form>(Type<Form>) {
    return Codec{GroupKernel<Isa, Form>::encode, GroupKernel<Isa, Form>::decode};
  });
}

}  // namespace tutti
