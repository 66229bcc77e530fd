// Conversions between float, float16 and bfloat16, as PTX defines them. Round to nearest even.
#pragma once

#include <bit>
#include <cmath>
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

}  // namespace tutti::ptx
