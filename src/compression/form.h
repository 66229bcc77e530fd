// What the bits on the wire mean: the arithmetic of each format, of one element and of one block, for host and device
// from one source. A Word is a std::uint32_t or a vector of them, a Real a float or a vector of as many.
//
// A form says
//   kBlock                             how many elements have a scale in common,
//   kScaleBytes                        how long that is; 0: there is none,
//   kCodeBits                          how long an element is,
//   kSpoils                            whether one that is not finite spoils its block, if there are scales,
//   bid(x, range)                      an element's part in the block's largest magnitude, as bits,
//   scale(largest, range)              the scale of a block,
//   finite_scale<Real>(largest, range) the same, where none of its elements counts as infinite; also of several,
//   stored(bits)                       the scale with these bits,
//   code(x, scale, range)              an element's code, to nearest,
//   finite_code(x, scale, range)       the same, where no element of the block counts as infinite,
//   dithered(x, scale, range, word)    and by a random word; but where the nearest is the top code of a bfloat16 scale,
//                                      it is that, so that the scale comes back from what is decoded,
//   value(code, scale)                 what a code means,
//   finite_value(code, scale)          the same of integers, where the scale is finite,
//   Element, kMaxFinite               of floats of eight bits: which, and the largest magnitude that is finite.
#pragma once

#include <cstdint>

#include "src/base/numeric.h"
#include "src/compression/codec.h"

namespace tutti {

template <typename Word, typename Real>
struct BlockScales {
  Word bits;     // As on the wire.
  Real step;     // What a code is multiplied by.
  Real inverse;  // What an element is multiplied by: 1 / step, rounded once.
  Word mask;     // Of the bits of a code: none where an element spoils its block.
};
using BlockScale = BlockScales<std::uint32_t, float>;

inline constexpr std::uint32_t kMagnitude = 0x7fffffffu;
inline constexpr std::uint32_t kInfinity = 0x7f800000u;
inline constexpr std::uint32_t kNan = 0x7fc00000u;

// The least magnitude that counts as infinite.
TUTTI_NUMERIC std::uint32_t limit_of(const GroupRange& range) {
  return __builtin_bit_cast(std::uint32_t, range.largest) + 1;
}

// Of magnitudes: compared as below() does, in a way for which registers have one instruction.
template <typename Word>
TUTTI_NUMERIC Word no_less(Word a, std::uint32_t least) {
  using Compared = std::conditional_t<std::is_integral_v<Word>, std::int32_t, decltype(Word{} < Word{})>;
  const Compared x = __builtin_bit_cast(Compared, a);
  const Compared y = __builtin_bit_cast(Compared, Word{} + least);
  return __builtin_bit_cast(Word, x < y ? y : x);
}
template <typename Word>
TUTTI_NUMERIC Word no_more(Word a, std::uint32_t most) {
  using Compared = std::conditional_t<std::is_integral_v<Word>, std::int32_t, decltype(Word{} < Word{})>;
  const Compared x = __builtin_bit_cast(Compared, a);
  const Compared y = __builtin_bit_cast(Compared, Word{} + most);
  return __builtin_bit_cast(Word, x < y ? x : y);
}

// The one NaN for any other, whose bits depend on who multiplied it.
template <typename Word, typename Real>
TUTTI_NUMERIC Real one_nan(Real value) {
  return value == value ? value : __builtin_bit_cast(Real, Word{} + kNan);
}

// The integer next below or above a magnitude under 2^31, by a random word.
TUTTI_NUMERIC float round_by(float magnitude, std::uint32_t word) {
  const auto below = static_cast<float>(static_cast<std::uint32_t>(magnitude));
  const float fraction = static_cast<float>(word >> 8) * 0x1p-24f;
  return fraction < magnitude - below ? below + 1 : below;
}

// The value of T next to a float32, or beyond it, by a random word; what T cannot hold is left to narrow().
template <typename T>
TUTTI_NUMERIC float round_float_by(float value, std::uint32_t word) {
  using At = Placement<T>;
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t magnitude = bits & kMagnitude;
  if (magnitude >= kInfinity) return value;
  const std::uint32_t sign = bits ^ magnitude;
  if constexpr (At::rebias == 0) {
    const std::uint32_t part = word >> (32 - At::shift);
    return __builtin_bit_cast(float, ((magnitude + part) >> At::shift << At::shift) | sign);
  } else {
    const std::uint32_t exponent = (magnitude < At::min_normal ? At::min_normal : magnitude) >> 23;
    const std::uint32_t last = exponent - Format<T>::mantissa_bits;  // Of the unit in the last place.
    const float units = __builtin_bit_cast(float, magnitude) * __builtin_bit_cast(float, (254 - last) << 23);
    const float rounded = round_by(units, word) * __builtin_bit_cast(float, last << 23);
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, rounded) | sign);
  }
}

// float16 and bfloat16. A tensor's type that holds fewer digits, or smaller ones, than the wire gets no more than it
// can hold: else it would round what is decoded, and that would be encoded differently.
template <typename T>
struct HalfForm {
  static constexpr std::uint32_t kBlock = kCompressionGroup;
  static constexpr std::uint32_t kScaleBytes = 0;
  static constexpr int kCodeBits = 16;

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word code(Real x, const BlockScale&, const GroupRange& range) {
    return narrow<T, Word>(held<Word>(x, range));
  }
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word finite_code(Real x, const BlockScale& scale, const GroupRange& range) {
    return code<Word>(x, scale, range);
  }
  TUTTI_NUMERIC static std::uint32_t dithered(float x, const BlockScale&, const GroupRange& range, std::uint32_t word) {
    return narrow<T, std::uint32_t>(round_float_by<T>(held<std::uint32_t>(x, range), word));
  }
  template <typename Real, typename Word>
  TUTTI_NUMERIC static Real value(Word code, const BlockScale&) {
    return one_nan<Word>(widen<T, Real>(code));
  }

  // The element as the tensor's type can hold it on the wire.
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Real held(Real x, const GroupRange& range) {
    if constexpr (Placement<T>::rebias == 0) {
      return range.type == DataType::float16 ? held_by_half<Word>(x) : x;
    } else {
      return range.type == DataType::bfloat16 ? widen<BFloat16, Real>(narrow<BFloat16, Word>(x)) : x;
    }
  }

 private:
  // Below 2^-16 a float16 has multiples of 2^-24 only, and its largest bfloat16 is 65280.
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Real held_by_half(Real x) {
    constexpr std::uint32_t kMax = 0x477f0000u;
    constexpr std::uint32_t kBeyond = 0x477fe001u;  // Next after 65504: infinite.
    constexpr std::uint32_t kFine = 0x37800000u;
    const Word bits = __builtin_bit_cast(Word, x);
    const Word magnitude = bits & kMagnitude;
    const Word sign = bits ^ magnitude;
    const Word ruled = __builtin_bit_cast(Word, (__builtin_bit_cast(Real, magnitude) + 0.5f) - 0.5f);
    const Word finite = below(magnitude, kMax) ? magnitude : Word{} + kMax;
    const Word special = below(magnitude, kInfinity + 1) ? Word{} + kInfinity : magnitude;
    const Word large = below(magnitude, kBeyond) ? finite : special;
    return __builtin_bit_cast(Real, (below(magnitude, kFine) ? ruled : large) | sign);
  }
};

// A bfloat16 scale for codes of at most Top::kValue, which is an odd number of kOddBits bits times a power of two.
//
// It comes back from what was decoded. The largest code of a block is always the top one, since its magnitude over the
// scale is within top * (1 -+ 2^-8). Top * scale is exact in float32, so that over top is the scale again. A bfloat16
// rounds top * scale by up to half a unit in its last place, which over top is nearest to the scale, too, unless it
// was a tie: scales that end in 1000..., kOddBits in all, make ties, and the next below is taken instead. A float16
// holds enough digits while the scale is no less than kMinSteps * range.min_step.
template <class Top>
struct Scaled {
  static constexpr std::uint32_t kScaleBytes = 2;

  TUTTI_NUMERIC static BlockScale stored(std::uint32_t bits) { return {bits, widen<BFloat16, float>(bits), 0, 0}; }

  template <typename Real, typename Word>
  TUTTI_NUMERIC static BlockScales<Word, Real> finite_scale(Word largest, const GroupRange& range) {
    constexpr std::uint32_t kTail = (1u << Top::kOddBits) - 1;
    constexpr std::uint32_t kTie = 1u << (Top::kOddBits - 1);
    const float min_step = range.min_step * Top::kMinSteps;
    const std::uint32_t least = __builtin_bit_cast(std::uint32_t, min_step) >> 16;
    Word bits = narrow<BFloat16, Word>(__builtin_bit_cast(Real, largest) / Top::kValue);
    bits = (bits & kTail) == kTie ? bits - 1 : bits;
    bits = no_less(bits, least);
    bits = widen<BFloat16, Real>(bits) * Top::kValue > range.largest ? bits - 1 : bits;
    const auto step = widen<BFloat16, Real>(bits);
    return {bits, step, 1.0f / step, Word{} - 1};
  }
};

// Integers in two's complement, without the least. An element that is not finite spoils its block: the scale is NaN,
// and the codes are 0.
template <int kBits>
struct IntegerTop {
  static constexpr int kOddBits = kBits - 1;
  static constexpr float kValue = (1 << (kBits - 1)) - 1;
  static constexpr float kMinSteps = 1 << (8 - kBits);
};

template <int kBits, std::uint32_t kElements>
struct IntegerForm : Scaled<IntegerTop<kBits>> {
  static constexpr std::uint32_t kBlock = kElements;
  static constexpr int kCodeBits = kBits;
  static constexpr bool kSpoils = true;

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word bid(Real x, const GroupRange&) {
    return __builtin_bit_cast(Word, x) & kMagnitude;
  }
  TUTTI_NUMERIC static BlockScale scale(std::uint32_t largest, const GroupRange& range) {
    if (largest >= limit_of(range)) return {kNan >> 16, 0, 0, 0};
    return Scaled<IntegerTop<kBits>>::template finite_scale<float>(largest, range);
  }

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word code(Real x, const BlockScale& scale, const GroupRange&) {
    const Word ruled = __builtin_bit_cast(Word, x * scale.inverse + kRuler);
    return no_more(no_less(ruled, kRulerBits - kMax), kRulerBits + kMax) & (kMask & scale.mask);
  }
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word finite_code(Real x, const BlockScale& scale, const GroupRange& range) {
    return code<Word>(x, scale, range);
  }
  TUTTI_NUMERIC static std::uint32_t dithered(float x, const BlockScale& scale, const GroupRange&, std::uint32_t word) {
    if (scale.mask == 0) return 0;
    const float scaled = x * scale.inverse;
    const float magnitude = scaled < 0 ? -scaled : scaled;
    const auto whole = static_cast<std::uint32_t>(magnitude > kTop - 0.5f ? kTop : round_by(magnitude, word));
    return (scaled < 0 ? 0 - whole : whole) & kMask;
  }
  template <typename Real, typename Word>
  TUTTI_NUMERIC static Real value(Word code, const BlockScale& scale) {
    return one_nan<Word>(finite_value<Real>(code, scale));
  }
  template <typename Real, typename Word>
  TUTTI_NUMERIC static Real finite_value(Word code, const BlockScale& scale) {
    const Word raised = (code ^ kSign) + kRulerBits;
    return (__builtin_bit_cast(Real, raised) - (kRuler + static_cast<float>(kSign))) * scale.step;
  }

 private:
  static constexpr float kTop = IntegerTop<kBits>::kValue;
  static constexpr auto kMax = static_cast<std::uint32_t>(kTop);
  static constexpr std::uint32_t kMask = (1u << kBits) - 1;
  static constexpr std::uint32_t kSign = 1u << (kBits - 1);
  // The unit in its last place is 1: what is added to it becomes an integer, in its low bits, of which it has none.
  static constexpr float kRuler = 0x1.8p23f;
  static constexpr std::uint32_t kRulerBits = 0x4b400000u;
};

// Floats of eight bits, of elements that are finite; the scale is of those alone.
template <typename T>
struct Float8Codes {
  using Element = T;
  static constexpr int kCodeBits = 8;
  // The largest code without its sign that is a number.
  static constexpr auto kMaxFinite =
      static_cast<std::uint8_t>(Format<T>::highest - (Placement<T>::has_infinity ? 1 : 0));
  static constexpr bool kSpoils = false;

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word bid(Real x, const GroupRange& range) {
    const Word magnitude = __builtin_bit_cast(Word, x) & kMagnitude;
    return below(magnitude, limit_of(range)) ? magnitude : Word{};
  }
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word code(Real x, const BlockScale& scale, const GroupRange& range) {
    return or_special<Word>(finite_code<Word>(x, scale, range), x, range);
  }
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word finite_code(Real x, const BlockScale& scale, const GroupRange&) {
    using At = Placement<T>;
    constexpr auto top = static_cast<std::uint32_t>(Format<T>::overflow);
    const Word bits = __builtin_bit_cast(Word, x * scale.inverse);
    const Word magnitude = no_more(bits & kMagnitude, (top << At::shift) + At::rebias);
    const Word exponent = no_less(magnitude, At::min_normal) & kInfinity;
    // What is added to a magnitude so that it becomes a multiple of the code's last place, in its own low bits: there
    // normal codes lack their exponent, less one.
    constexpr std::uint32_t kBehind = (0u - (At::min_normal >> At::shift)) & 0x7fu;
    static_assert(kBehind % 2 == 0, "ties go to even codes");
    const Word ruler = exponent + (static_cast<std::uint32_t>(At::shift << 23) + kBehind);
    const Real ruled = __builtin_bit_cast(Real, magnitude) + __builtin_bit_cast(Real, ruler);
    const Word code = __builtin_bit_cast(Word, ruled) + (exponent >> At::shift);
    return (code & 0x7fu) | (bits >> 24 & 0x80u);
  }
  TUTTI_NUMERIC static std::uint32_t dithered(float x, const BlockScale& scale, const GroupRange& range,
                                              std::uint32_t word) {
    return or_special<std::uint32_t>(narrow<T, std::uint32_t>(round_float_by<T>(x * scale.inverse, word)), x, range);
  }
  template <typename Real, typename Word>
  TUTTI_NUMERIC static Real value(Word code, const BlockScale& scale) {
    return one_nan<Word>(widen<T, Real>(code) * scale.step);
  }

 private:
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word or_special(Word finite, Real x, const GroupRange& range) {
    constexpr auto nan = static_cast<std::uint32_t>(Format<T>::nan);
    const Word bits = __builtin_bit_cast(Word, x);
    const Word magnitude = bits & kMagnitude;
    Word special = Word{} + nan;
    if constexpr (Placement<T>::has_infinity) {
      const Word infinite = (bits >> 24 & 0x80u) | static_cast<std::uint32_t>(Format<T>::highest);
      special = below(magnitude, kInfinity + 1) ? infinite : special;
    }
    return below(magnitude, limit_of(range)) ? finite : special;
  }
};

template <typename T>
struct Float8Top {
  static constexpr int kOddBits = 3;  // 7 times a power of two.
  static constexpr float kValue = Format<T>::exponent_bits == 4 ? 448 : 57344;
  // The least code times the scale is no less than the least float16.
  static constexpr float kMinSteps = Format<T>::exponent_bits == 4 ? 0x1p7f : 0x1p14f;
};

template <typename T>
struct Float8Form : Scaled<Float8Top<T>>, Float8Codes<T> {
  static constexpr std::uint32_t kBlock = 128;

  TUTTI_NUMERIC static BlockScale scale(std::uint32_t largest, const GroupRange& range) {
    return Scaled<Float8Top<T>>::template finite_scale<float>(largest, range);
  }
  TUTTI_NUMERIC static std::uint32_t dithered(float x, const BlockScale& scale, const GroupRange& range,
                                              std::uint32_t word) {
    constexpr std::uint32_t kMagnitudeOfCode = 0x7f;
    const auto nearest = Float8Codes<T>::template code<std::uint32_t>(x, scale, range);
    const bool is_top = (nearest & kMagnitudeOfCode) == narrow<T, std::uint32_t>(Float8Top<T>::kValue);
    return is_top ? nearest : Float8Codes<T>::dithered(x, scale, range, word);
  }
};

// Blocks of the OCP Microscaling Formats (MX) specification, version 1.0: E4M3 under a scale of E8M0, which is a power
// of two. Its exponent is that of the largest magnitude less that of the largest code; larger codes saturate.
struct MicroForm : Float8Codes<Float8E4M3> {
  static constexpr std::uint32_t kBlock = 32;
  static constexpr std::uint32_t kScaleBytes = 1;

  TUTTI_NUMERIC static BlockScale scale(std::uint32_t largest, const GroupRange& range) {
    return finite_scale<float>(largest, range);
  }
  template <typename Real, typename Word>
  TUTTI_NUMERIC static BlockScales<Word, Real> finite_scale(Word largest, const GroupRange& range) {
    constexpr std::uint32_t kTopExponent = 8;
    const float min_step = range.min_step * Float8Top<Float8E4M3>::kMinSteps;
    const std::uint32_t least = __builtin_bit_cast(std::uint32_t, min_step) >> 23;
    const Word exponent = largest >> 23;
    const Word bits = below(exponent, least + kTopExponent) ? Word{} + least : exponent - kTopExponent;
    const auto step = __builtin_bit_cast(Real, bits << 23);
    return {bits, step, 1.0f / step, Word{} - 1};
  }
  TUTTI_NUMERIC static BlockScale stored(std::uint32_t bits) {
    const std::uint32_t normal = bits == 255 ? kNan : bits << 23;
    return {bits, __builtin_bit_cast(float, bits == 0 ? 0x00400000u : normal), 0, 0};
  }
};

}  // namespace tutti
