// Conversions and arithmetic on element bits, from one source for scalars, SIMD registers and devices. Word is
// std::uint32_t or a vector of it; Real is float or a vector of the same length.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/base/platform.h"
#include "src/base/status.h"
#include "src/base/types.h"

// Always inlined: copies for different instruction sets must not be merged by the linker.
#define TUTTI_NUMERIC TUTTI_HOST_DEVICE [[gnu::always_inline]] inline

namespace tutti {

struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Float8E4M3 {  // OCP "fn": no infinity, one NaN, maximum 448.
  std::uint8_t bits;
};
struct Float8E5M2 {
  std::uint8_t bits;
};
struct Bool {
  std::uint8_t bits;
};
template <typename T>
struct Complex {
  T real, imaginary;
};

template <typename T>
struct Type {
  using type = T;
};

template <std::size_t kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

// Unsigned integer with the size of an element.
template <typename T>
using Bits = UnsignedOf<sizeof(T)>;

// Calls visitor(Type<T>()) with the C++ type T of `type`. Host only: switches in kernels call functions for T
// themselves.
template <typename Visitor>
decltype(auto) visit(DataType type, Visitor&& visitor) {
  switch (type) {
    case DataType::int8: return visitor(Type<std::int8_t>());
    case DataType::uint8: return visitor(Type<std::uint8_t>());
    case DataType::int16: return visitor(Type<std::int16_t>());
    case DataType::uint16: return visitor(Type<std::uint16_t>());
    case DataType::int32: return visitor(Type<std::int32_t>());
    case DataType::uint32: return visitor(Type<std::uint32_t>());
    case DataType::int64: return visitor(Type<std::int64_t>());
    case DataType::uint64: return visitor(Type<std::uint64_t>());
    case DataType::float16: return visitor(Type<Float16>());
    case DataType::bfloat16: return visitor(Type<BFloat16>());
    case DataType::float32: return visitor(Type<float>());
    case DataType::float64: return visitor(Type<double>());
    case DataType::float8_e4m3: return visitor(Type<Float8E4M3>());
    case DataType::float8_e5m2: return visitor(Type<Float8E5M2>());
    case DataType::boolean: return visitor(Type<Bool>());
    case DataType::complex64: return visitor(Type<Complex<float>>());
    case DataType::complex128: return visitor(Type<Complex<double>>());
  }
  assertion_failed("a known data type", __FILE__, __LINE__);
}

// Format of a float: sign, exponent, mantissa. The other members are magnitudes (bits without sign): the highest that
// is not NaN; the result of overflow (8-bit formats saturate, like CUDA's conversions); and the NaN that arithmetic
// writes. A single NaN makes results independent of the instructions used.
template <typename T>
struct Format {
  static constexpr bool is_float = false;
};

template <int kExponent, int kMantissa, std::uint64_t kHighest, std::uint64_t kOverflow, std::uint64_t kNan>
struct FloatFormat {
  static constexpr bool is_float = true;
  static constexpr int exponent_bits = kExponent;
  static constexpr int mantissa_bits = kMantissa;
  static constexpr std::uint64_t highest = kHighest;
  static constexpr std::uint64_t overflow = kOverflow;
  static constexpr std::uint64_t nan = kNan;
};

template <>
struct Format<Float16> : FloatFormat<5, 10, 0x7c00, 0x7c00, 0x7e00> {};
template <>
struct Format<BFloat16> : FloatFormat<8, 7, 0x7f80, 0x7f80, 0x7fc0> {};
template <>
struct Format<Float8E4M3> : FloatFormat<4, 3, 0x7e, 0x7e, 0x7f> {};
template <>
struct Format<Float8E5M2> : FloatFormat<5, 2, 0x7c, 0x7b, 0x7f> {};
template <>
struct Format<float> : FloatFormat<8, 23, 0x7f800000, 0x7f800000, 0x7fc00000> {};
template <>
struct Format<double> : FloatFormat<11, 52, 0x7ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000000> {};

// True for floats that are too narrow to accumulate in: their sums are computed in float32 and rounded once.
template <typename T>
inline constexpr bool is_narrow_float = Format<T>::is_float && sizeof(T) < sizeof(float);

// Position of a narrow float's fields within a float32.
template <typename T>
struct Placement {
  static constexpr int shift = 23 - Format<T>::mantissa_bits;
  static constexpr int sign_shift = 32 - 8 * static_cast<int>(sizeof(T));
  static constexpr std::uint32_t sign = 0x80000000u >> sign_shift;
  static constexpr std::uint32_t rebias = (128u - (1u << (Format<T>::exponent_bits - 1))) << 23;
  static constexpr std::uint32_t min_normal = rebias + (1u << 23);
  // Smallest non-finite magnitude, shifted to its position: infinity, or NaN for formats without infinity.
  static constexpr bool has_infinity = Format<T>::highest != Format<T>::nan - 1;
  static constexpr std::uint32_t beyond = static_cast<std::uint32_t>(has_infinity ? Format<T>::highest : Format<T>::nan)
                                          << shift;
  static constexpr std::uint32_t special = has_infinity ? 0x7f800000u : 0x7fc00000u;
};

// Compares magnitudes, which have no sign bit, as signed words, because all SIMD instruction sets can do that. A
// comparison of vectors yields a vector of signed words; decltype finds its type.
template <typename Word>
TUTTI_NUMERIC auto below(Word a, std::uint32_t b) {
  using Compared = std::conditional_t<std::is_integral_v<Word>, std::int32_t, decltype(Word{} < Word{})>;
  return __builtin_bit_cast(Compared, a) < __builtin_bit_cast(Compared, Word{} + b);
}

// Converts a zero-extended narrow float to float32, exactly. NaN stays NaN.
template <typename T, typename Real, typename Word>
TUTTI_NUMERIC Real widen(Word bits) {
  using At = Placement<T>;
  if constexpr (At::rebias == 0) {
    return __builtin_bit_cast(Real, bits << At::shift);
  } else {
    const Word sign = (bits & At::sign) << At::sign_shift;
    const Word magnitude = (bits & (At::sign - 1)) << At::shift;
    // A subnormal gets an exponent with an implicit leading one, which the subtraction removes.
    const Real scaled = __builtin_bit_cast(Real, magnitude + At::min_normal);
    const Real leading = __builtin_bit_cast(Real, Word{} + At::min_normal);
    const Word subnormal = __builtin_bit_cast(Word, scaled - leading);
    const Word finite = below(magnitude, 1u << 23) ? subnormal : magnitude + At::rebias;
    const Word special = (magnitude - At::beyond) | At::special;
    return __builtin_bit_cast(Real, (below(magnitude, At::beyond) ? finite : special) | sign);
  }
}

// Converts float32 to the nearest narrow float, ties to even.
template <typename T, typename Word, typename Real>
TUTTI_NUMERIC Word narrow(Real value) {
  using At = Placement<T>;
  constexpr auto nan = static_cast<std::uint32_t>(Format<T>::nan);
  const Word bits = __builtin_bit_cast(Word, value);
  constexpr std::uint32_t below_half = (1u << (At::shift - 1)) - 1u;
  if constexpr (At::rebias == 0) {
    const Word odd = (bits >> At::shift) & 1u;
    const Word rounded = (bits + (below_half + odd)) >> At::shift;
    return value == value ? rounded : Word{} + nan;
  } else {
    // Clamp values that are too large: the limit is the value of Format::overflow.
    constexpr std::uint32_t limit = (static_cast<std::uint32_t>(Format<T>::overflow) << At::shift) + At::rebias;
    const Word whole = bits & 0x7fffffffu;
    const Word magnitude = below(whole, limit) ? whole : Word{} + limit;
    const Word odd = (magnitude >> At::shift) & 1u;
    const Word normal = (magnitude - (At::rebias - below_half) + odd) >> At::shift;
    // Adding a number whose last bit is the smallest subnormal rounds to that bit.
    constexpr std::uint32_t ruler = At::rebias + (static_cast<std::uint32_t>(At::shift + 1) << 23);
    const Real ruled = __builtin_bit_cast(Real, magnitude) + __builtin_bit_cast(Real, Word{} + ruler);
    const Word finite = below(magnitude, At::min_normal) ? __builtin_bit_cast(Word, ruled) - ruler : normal;
    return value == value ? finite | ((bits >> At::sign_shift) & At::sign) : Word{} + nan;
  }
}

template <typename T>
TUTTI_NUMERIC float to_float(T element) {
  return widen<T, float>(std::uint32_t{element.bits});
}

template <typename T>
TUTTI_NUMERIC T from_float(float value) {
  return {static_cast<decltype(T::bits)>(narrow<T, std::uint32_t>(value))};
}

}  // namespace tutti
