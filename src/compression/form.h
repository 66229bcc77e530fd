// Arithmetic of each compression format, for one element and one scale block. Host and device share this source. Word
// is std::uint32_t or a vector of it; Real is float or a vector with as many lanes.
//
// A form provides:
//   kScaleBlock                        elements that share a scale
//   kScaleBytes                        bytes of a scale; 0: no scales
//   kCodeBits                          bits of a code
//   scale_magnitude(x, range)                      magnitude bits of x as they count for the scale block's maximum
//   scale(largest, range)              scale of a scale block by its maximum
//   finite_scale<Real>(largest, range) scale() without infinite elements; also for several scale blocks at once
//   stored(bits)                       scale with these encoded bits
//   code(x, scale, range)              code of x, rounded to nearest
//   finite_code(x, scale, range)       code() for a scale block without infinite elements
//   dithered(x, scale, range, word)    code of x, rounded stochastically by a random word. If the nearest code under a
//                                      bfloat16 scale is the top code, it is kept, so that the scale can be recovered
//                                      from the decoded values
//   value(code, scale)                 decoded value
//   finite_value(code, scale)          integers: value() for a finite scale
//   Element, kMaxFinite               8-bit floats: the element type, and the largest finite magnitude code
#pragma once

#include <cstdint>

#include "src/base/numeric.h"
#include "src/compression/codec.h"

namespace tutti {

template <typename Word, typename Real>
struct BlockScales {
  Word bits;     // Encoded bits.
  Real step;     // Factor for decoding.
  Real inverse;  // Factor for encoding: 1 / step, rounded once.
  Word mask;     // ANDed to each code; 0 if a non-finite element spoils the scale block.
};
using BlockScale = BlockScales<std::uint32_t, float>;

inline constexpr std::uint32_t kMagnitude = 0x7fffffffu;
inline constexpr std::uint32_t kInfinity = 0x7f800000u;
inline constexpr std::uint32_t kNan = 0x7fc00000u;

// Smallest magnitude that counts as infinite.
TUTTI_NUMERIC std::uint32_t limit_of(const GroupRange& range) {
  return __builtin_bit_cast(std::uint32_t, range.largest) + 1;
}

// max(a, min) for magnitudes, as a signed comparison, which vector units do in one instruction.
template <typename Word>
TUTTI_NUMERIC Word clamp_min(Word a, std::uint32_t min) {
  using Compared = std::conditional_t<std::is_integral_v<Word>, std::int32_t, decltype(Word{} < Word{})>;
  const Compared x = __builtin_bit_cast(Compared, a);
  const Compared y = __builtin_bit_cast(Compared, Word{} + min);
  return __builtin_bit_cast(Word, x < y ? y : x);
}
template <typename Word>
TUTTI_NUMERIC Word clamp_max(Word a, std::uint32_t max) {
  using Compared = std::conditional_t<std::is_integral_v<Word>, std::int32_t, decltype(Word{} < Word{})>;
  const Compared x = __builtin_bit_cast(Compared, a);
  const Compared y = __builtin_bit_cast(Compared, Word{} + max);
  return __builtin_bit_cast(Word, x < y ? x : y);
}

// Replaces every NaN by one bit pattern, because the payload bits depend on the processor.
template <typename Word, typename Real>
TUTTI_NUMERIC Real one_nan(Real value) {
  return value == value ? value : __builtin_bit_cast(Real, Word{} + kNan);
}

// Rounds a magnitude below 2^31 stochastically to the integer below or above.
TUTTI_NUMERIC float round_by(float magnitude, std::uint32_t word) {
  const auto below = static_cast<float>(static_cast<std::uint32_t>(magnitude));
  const float fraction = static_cast<float>(word >> 8) * 0x1p-24f;
  return fraction < magnitude - below ? below + 1 : below;
}

// Rounds a float32 stochastically to an adjacent value of T. Overflow is left to narrow().
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
    const std::uint32_t last = exponent - Format<T>::mantissa_bits;  // Biased exponent of the unit in the last place.
    const float units = __builtin_bit_cast(float, magnitude) * __builtin_bit_cast(float, (254 - last) << 23);
    const float rounded = round_by(units, word) * __builtin_bit_cast(float, last << 23);
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, rounded) | sign);
  }
}

// float16 and bfloat16. A value is first rounded to the tensor's type where that type is coarser. Otherwise the
// receiver would round the decoded value, and its re-encoding would differ.
template <typename T>
struct HalfForm {
  static constexpr std::uint32_t kScaleBlock = kCompressionGroup;
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

  // Rounds to a value that both the format and the tensor's type can hold.
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Real held(Real x, const GroupRange& range) {
    if constexpr (Placement<T>::rebias == 0) {
      return range.type == DataType::float16 ? held_by_half<Word>(x) : x;
    } else {
      return range.type == DataType::bfloat16 ? widen<BFloat16, Real>(narrow<BFloat16, Word>(x)) : x;
    }
  }

 private:
  // float16 has only multiples of 2^-24 below 2^-16. The largest float16 that is also a bfloat16 is 65280.
  template <typename Word, typename Real>
  TUTTI_NUMERIC static Real held_by_half(Real x) {
    constexpr std::uint32_t kMax = 0x477f0000u;
    constexpr std::uint32_t kBeyond = 0x477fe001u;  // Successor of 65504: infinite.
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

// A bfloat16 scale for codes up to Top::kValue, an odd number of kOddBits bits times a power of two.
//
// The scale can be recovered from the decoded values. The largest element of a scale block always gets the top code:
// its magnitude divided by the scale is within top * (1 -+ 2^-8). The product top * scale is exact in float32, so
// dividing by top gives the scale. A bfloat16 tensor rounds top * scale by up to half a unit in the last place.
// Dividing by top and rounding still gives the scale, unless that rounding was a tie. Ties occur for scales whose low
// kOddBits bits are 1000...; the next smaller scale is used for them. A float16 tensor has enough digits if the scale
// is at least kMinSteps * range.min_step.
template <class Top>
struct Scaled {
  static constexpr std::uint32_t kScaleBytes = 2;

  TUTTI_NUMERIC static BlockScale stored(std::uint32_t bits) { return {bits, widen<BFloat16, float>(bits), 0, 0}; }

  template <typename Real, typename Word>
  TUTTI_NUMERIC static BlockScales<Word, Real> finite_scale(Word largest, const GroupRange& range) {
    constexpr std::uint32_t kTail = (1u << Top::kOddBits) - 1;
    constexpr std::uint32_t kTie = 1u << (Top::kOddBits - 1);
    const float min_step = range.min_step * Top::kMinSteps;
    const std::uint32_t min = __builtin_bit_cast(std::uint32_t, min_step) >> 16;
    Word bits = narrow<BFloat16, Word>(__builtin_bit_cast(Real, largest) / Top::kValue);
    bits = (bits & kTail) == kTie ? bits - 1 : bits;
    bits = clamp_min(bits, min);
    bits = widen<BFloat16, Real>(bits) * Top::kValue > range.largest ? bits - 1 : bits;
    const auto step = widen<BFloat16, Real>(bits);
    return {bits, step, 1.0f / step, Word{} - 1};
  }
};

// Integers in two's complement, without the most negative one. A non-finite element spoils its scale block: the scale
// becomes NaN and all codes 0.
template <int kBits>
struct IntegerTop {
  static constexpr int kOddBits = kBits - 1;
  static constexpr float kValue = (1 << (kBits - 1)) - 1;
  static constexpr float kMinSteps = 1 << (8 - kBits);
};

template <int kBits, std::uint32_t kElements>
struct IntegerForm : Scaled<IntegerTop<kBits>> {
  static constexpr std::uint32_t kScaleBlock = kElements;
  static constexpr int kCodeBits = kBits;

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word scale_magnitude(Real x, const GroupRange&) {
    return __builtin_bit_cast(Word, x) & kMagnitude;
  }
  TUTTI_NUMERIC static BlockScale scale(std::uint32_t largest, const GroupRange& range) {
    if (largest >= limit_of(range)) return {kNan >> 16, 0, 0, 0};
    return Scaled<IntegerTop<kBits>>::template finite_scale<float>(largest, range);
  }

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word code(Real x, const BlockScale& scale, const GroupRange&) {
    const Word ruled = __builtin_bit_cast(Word, x * scale.inverse + kRuler);
    return clamp_max(clamp_min(ruled, kRulerBits - kMax), kRulerBits + kMax) & (kMask & scale.mask);
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
  // The unit in the last place of kRuler is 1. Adding it leaves the rounded integer in the low bits, which are 0 in
  // kRuler.
  static constexpr float kRuler = 0x1.8p23f;
  static constexpr std::uint32_t kRulerBits = 0x4b400000u;
};

// 8-bit floats. The scale depends on the finite elements only.
template <typename T>
struct Float8Codes {
  using Element = T;
  static constexpr int kCodeBits = 8;
  // Largest finite code without sign.
  static constexpr auto kMaxFinite =
      static_cast<std::uint8_t>(Format<T>::highest - (Placement<T>::has_infinity ? 1 : 0));

  template <typename Word, typename Real>
  TUTTI_NUMERIC static Word scale_magnitude(Real x, const GroupRange& range) {
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
    const Word magnitude = clamp_max(bits & kMagnitude, (top << At::shift) + At::rebias);
    const Word exponent = clamp_min(magnitude, At::min_normal) & kInfinity;
    // Adding `ruler` rounds the magnitude to a multiple of the code's last place, and leaves the code in the low bits.
    // Normal codes then lack their exponent minus one, which is added below.
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
  // The smallest code times the scale is then at least the smallest float16.
  static constexpr float kMinSteps = Format<T>::exponent_bits == 4 ? 0x1p7f : 0x1p14f;
};

template <typename T>
struct Float8Form : Scaled<Float8Top<T>>, Float8Codes<T> {
  static constexpr std::uint32_t kScaleBlock = 128;

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

// Block format of the OCP Microscaling Formats (MX) specification 1.0: E4M3 elements with an E8M0 scale, a power of
// two. Scale exponent: that of the scale block's maximum minus that of the largest code. Larger codes saturate.
struct MicroForm : Float8Codes<Float8E4M3> {
  static constexpr std::uint32_t kScaleBlock = 32;
  static constexpr std::uint32_t kScaleBytes = 1;

  TUTTI_NUMERIC static BlockScale scale(std::uint32_t largest, const GroupRange& range) {
    return finite_scale<float>(largest, range);
  }
  template <typename Real, typename Word>
  TUTTI_NUMERIC static BlockScales<Word, Real> finite_scale(Word largest, const GroupRange& range) {
    constexpr std::uint32_t kTopExponent = 8;
    const float min_step = range.min_step * Float8Top<Float8E4M3>::kMinSteps;
    const std::uint32_t min = __builtin_bit_cast(std::uint32_t, min_step) >> 23;
    const Word exponent = largest >> 23;
    const Word bits = below(exponent, min + kTopExponent) ? Word{} + min : exponent - kTopExponent;
    const auto step = __builtin_bit_cast(Real, bits << 23);
    return {bits, step, 1.0f / step, Word{} - 1};
  }
  TUTTI_NUMERIC static BlockScale stored(std::uint32_t bits) {
    const std::uint32_t normal = bits == 255 ? kNan : bits << 23;
    return {bits, __builtin_bit_cast(float, bits == 0 ? 0x00400000u : normal), 0, 0};
  }
};

}  // namespace tutti
