// Conversions to and from float16 and bfloat16, as PTX defines them, and comparisons. Round to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <cstdint>

#include "tests/ptx/machine/compute.h"

namespace tutti::ptx {

inline float widen(BFloat16Bits value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

inline float widen(Float16Bits value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = value.bits >> 10 & 0x1fU, fraction = value.bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(fraction == 0 ? sign | 0x7f800000U : 0x7fffffffU);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

inline BFloat16Bits narrow_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1)) >> 16)};
}

inline Float16Bits narrow_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  if (value != value) return {0x7fff};
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude >= 0x477ff000U) {  // Rounds to infinity.
    result = 0x7c00;
  } else if (magnitude < 0x38800000U) {  // Subnormal: adding a constant rounds to multiples of 2^-24.
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    result = (magnitude - 0x38000000U + 0xfffU + (magnitude >> 13 & 1)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | result)};
}

inline bool is_odd(float value) { return (std::bit_cast<std::uint32_t>(value) & 1) != 0; }
inline bool is_odd(double value) { return (std::bit_cast<std::uint64_t>(value) & 1) != 0; }

// Returns an exact value, or else that of the two floats next to it whose last bit is odd. A later rounding to at most
// 22 bits then has the result for the exact value.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value || is_odd(nearest)) return nearest;
  return std::nextafter(nearest, value > static_cast<double>(nearest) ? HUGE_VALF : -HUGE_VALF);
}

template <typename T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, Float16Bits>) return narrow_float16(round_to_odd(value));
  if constexpr (std::is_same_v<T, BFloat16Bits>) return narrow_bfloat16(round_to_odd(value));
}

template <typename T>
concept Half = std::is_same_v<T, Float16Bits> || std::is_same_v<T, BFloat16Bits>;
template <Half T>
bool operator==(T a, T b) {
  return widen(a) == widen(b);
}
template <Half T>
std::partial_ordering operator<=>(T a, T b) {
  return widen(a) <=> widen(b);
}

}  // namespace tutti::ptx
