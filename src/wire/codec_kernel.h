// Whole groups, written for GNU vectors and compiled once for each instruction set: an Isa of src/base/vector_*.h. It
// says
//   kBytes                   how wide its registers are,
//   words(x), packed<T>(x)   how it converts between words and narrower integers of as many lanes,
//   widened<T, kLanes>(bits), narrowed<T, kLanes>(value)   and narrow floats.
#pragma once

#include "src/base/vector.h"
#include "src/wire/codec_kernels.h"
#include "src/wire/forms.h"

namespace tutti {

template <class Isa, class Form>
class GroupKernel {
 public:
  static constexpr unsigned kLanes = Isa::kBytes / sizeof(float);
  static constexpr unsigned kRegisters = kWireGroup / kLanes;
  using Real = Vector<float, kLanes>;
  using Word = Vector<std::uint32_t, kLanes>;
  // A group in registers, where there are as many.
  struct Values {
    Real at[kRegisters];
  };

  static void encode(const float* values, std::uint64_t count, std::byte* wire, WireRange range, const Dither* dither) {
    if (dither != nullptr) return encode_singly<Form>(values, count, wire, range, dither);
    std::uint64_t i = 0;
    for (; count - i >= kWireGroup; i += kWireGroup, wire += kGroupBytes<Form>) {
      const Values group = load_values(values + i);
      write(group, wire, range);
    }
    if (i == count) return;
    float padded[kWireGroup] = {};
    std::memcpy(padded, values + i, (count - i) * sizeof(float));
    encode(padded, kWireGroup, wire, range, nullptr);
  }

  static void decode(const std::byte* wire, std::uint64_t count, float* values) {
    std::uint64_t i = 0;
    for (; count - i >= kWireGroup; i += kWireGroup, wire += kGroupBytes<Form>) store_values(read(wire), values + i);
    if (i == count) return;
    float padded[kWireGroup];
    decode(wire, kWireGroup, padded);
    std::memcpy(values + i, padded, (count - i) * sizeof(float));
  }

  TUTTI_KERNEL static Values load_values(const float* from) {
    Values values;
#pragma GCC unroll 8
    for (unsigned r = 0; r < kRegisters; ++r)
      values.at[r] = load<float, kLanes>(reinterpret_cast<const std::byte*>(from + r * kLanes));
    return values;
  }
  TUTTI_KERNEL static void store_values(const Values& values, float* to) {
#pragma GCC unroll 8
    for (unsigned r = 0; r < kRegisters; ++r) std::memcpy(to + r * kLanes, &values.at[r], sizeof(Real));
  }

  // What a group on the wire means.
  TUTTI_KERNEL static Values read(const std::byte* wire) {
    Scales scales;
    if constexpr (Form::kScaleBytes != 0) scales = stored_scales(wire);
    const std::byte* codes = wire + kScalesBytes<Form>;
    Code unpacked[kBits < 8 ? kWireGroup : 1];
    if constexpr (kBits < 8) {
      unpack(codes, reinterpret_cast<std::byte*>(unpacked));
      codes = reinterpret_cast<const std::byte*>(unpacked);
    }
    Values values;
#pragma GCC unroll 8
    for (unsigned r = 0; r < kRegisters; ++r)
      values.at[r] = meaning(load<Code, kLanes>(codes + r * kLanes * sizeof(Code)), scales.of(r));
    return values;
  }

  // Encodes a group.
  TUTTI_KERNEL static void write(const Values& values, std::byte* wire, const WireRange& range) {
    Scales scales;
    if constexpr (Form::kScaleBytes != 0) {
      const Four largest = largest_of_blocks(values);
      // Rare, and not worth its instructions in registers.
      if (any_beyond(largest, range)) {
        float group[kWireGroup];
        store_values(values, group);
        return encode_singly<Form>(group, kWireGroup, wire, range, nullptr);
      }
      scales = new_scales(largest, wire, range);
    }
    Code unpacked[kBits < 8 ? kWireGroup : 1];
    std::byte* const codes = kBits < 8 ? reinterpret_cast<std::byte*>(unpacked) : wire + kScalesBytes<Form>;
#pragma GCC unroll 8
    for (unsigned r = 0; r < kRegisters; ++r) {
      const CodeRegister code = code_of(values.at[r], scales.of(r), range);
      std::memcpy(codes + r * sizeof code, &code, sizeof code);
    }
    if constexpr (kBits < 8) pack(codes, wire + kScalesBytes<Form>);
  }

 private:
  static constexpr int kBits = Form::kCodeBits;
  // Codes narrower than a byte are packed from bytes.
  using Code = std::conditional_t<kBits == 16, std::uint16_t, std::uint8_t>;
  using CodeRegister = Vector<Code, kLanes>;

  // What blocks have, a lane each; where there is one block, all lanes have it.
  static constexpr unsigned kBlocks = kWireGroup / Form::kBlock;
  static_assert(kBlocks == 1 || kBlocks == 4);
  using Four = Vector<std::uint32_t, 4>;
  using FourReals = Vector<float, 4>;
  struct Scales {
    FourReals step = {}, inverse = {};
    TUTTI_KERNEL BlockScale of(unsigned reg) const {
      const unsigned block = reg * kLanes / Form::kBlock;
      return {0, step[block], inverse[block], ~0u};
    }
  };

  // Magnitudes have no sign bit, and registers compare signed words.
  using Magnitudes = Vector<std::int32_t, kLanes>;
  TUTTI_KERNEL static Magnitudes larger(Magnitudes a, Magnitudes b) { return a < b ? b : a; }
  // Of each lane and that `distance` away.
  template <int kDistance>
  TUTTI_KERNEL static Magnitudes larger_of_lanes(Magnitudes a) {
    Magnitudes other;
    for (int k = 0; k < static_cast<int>(kLanes); ++k) other[k] = k ^ kDistance;
    return larger(a, __builtin_shuffle(a, other));
  }
  // Of each four lanes, the larger of the first and second half of `a`, then those of `b`; kWidth of one after the
  // other.
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
    constexpr unsigned kEach = kRegisters / kBlocks;
    Magnitudes largest[kBlocks];
#pragma GCC unroll 4
    for (unsigned block = 0; block < kBlocks; ++block) {
#pragma GCC unroll 8
      for (unsigned r = 0; r < kEach; ++r) {
        const auto bits = __builtin_bit_cast(Magnitudes, values.at[block * kEach + r]);
        const Magnitudes magnitudes = bits & static_cast<std::int32_t>(kMagnitude);
        largest[block] = r == 0 ? magnitudes : larger(largest[block], magnitudes);
      }
    }
    Magnitudes all;
    if constexpr (kBlocks == 4) {
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

  TUTTI_KERNEL static bool any_beyond(Four largest, const WireRange& range) {
    struct Halves {
      std::uint64_t low, high;
    };
    const auto halves = __builtin_bit_cast(Halves, below(largest, limit_of(range)));
    return (halves.low & halves.high) != ~std::uint64_t{0};
  }

  TUTTI_KERNEL static Scales new_scales(Four largest, std::byte* wire, const WireRange& range) {
    const auto scales = Form::template finite_scale<FourReals>(largest, range);
    using Stored = std::conditional_t<Form::kScaleBytes == 2, std::uint16_t, std::uint8_t>;
    const auto bits = converted<Stored, std::uint32_t, 4>(scales.bits);
    std::memcpy(wire, &bits, kScalesBytes<Form>);
    return {scales.step, scales.inverse};
  }

  TUTTI_KERNEL static Scales stored_scales(const std::byte* wire) {
    Scales scales;
#pragma GCC unroll 4
    for (unsigned block = 0; block < kBlocks; ++block) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, wire + block * Form::kScaleBytes, Form::kScaleBytes);
      scales.step[block] = Form::stored(bits).step;
    }
    return scales;
  }

  TUTTI_KERNEL static CodeRegister code_of(Real x, const BlockScale& scale, const WireRange& range) {
    if constexpr (std::is_same_v<Form, HalfForm<Float16>>) {
      return Isa::template narrowed<Float16, kLanes>(Form::template held<Word>(x, range));
    } else {
      return Isa::template packed<Code>(Form::template finite_code<Word>(x, scale, range));
    }
  }
  TUTTI_KERNEL static Real meaning(CodeRegister code, const BlockScale& scale) {
    if constexpr (std::is_same_v<Form, HalfForm<Float16>>) {
      return one_nan<Word>(Isa::template widened<Float16, kLanes>(code));
    } else {
      return Form::template value<Real>(Word(Isa::words(code)), scale);
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
