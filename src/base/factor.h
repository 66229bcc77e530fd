// Scalar of a pre_mul_sum, read from memory of the program. Host and device compile this source.
#pragma once

#include <cstdint>

#include "src/base/numeric.h"

namespace tutti {

struct Factor {
  double scale = 1;  // For floats, and the real part of complex numbers; integers use integer_scale.
  double imaginary_scale = 0;
  std::int64_t integer_scale = 1;
};

template <typename T>
TUTTI_HOST_DEVICE inline Factor factor_as(const void* element) {
  const Bits<T> bits = *static_cast<const Bits<T>*>(element);
  Factor factor;
  if constexpr (is_narrow_float<T>) {
    factor.scale = widen<T, float>(std::uint32_t{bits});
  } else if constexpr (Format<T>::is_float) {
    factor.scale = __builtin_bit_cast(T, bits);
  } else {
    factor.integer_scale = static_cast<std::int64_t>(bits);  // Products wrap, so signedness is irrelevant.
  }
  return factor;
}

template <typename T>
TUTTI_HOST_DEVICE inline Factor complex_factor_as(const void* element) {
  const T* parts = static_cast<const T*>(element);
  return {.scale = parts[0], .imaginary_scale = parts[1]};
}

// `element` must be aligned to its type. Bool has no factors.
TUTTI_HOST_DEVICE inline Factor factor_of(DataType type, const void* element) {
  switch (type) {
    case DataType::int8: return factor_as<std::int8_t>(element);
    case DataType::uint8: return factor_as<std::uint8_t>(element);
    case DataType::int16: return factor_as<std::int16_t>(element);
    case DataType::uint16: return factor_as<std::uint16_t>(element);
    case DataType::int32: return factor_as<std::int32_t>(element);
    case DataType::uint32: return factor_as<std::uint32_t>(element);
    case DataType::int64: return factor_as<std::int64_t>(element);
    case DataType::uint64: return factor_as<std::uint64_t>(element);
    case DataType::float16: return factor_as<Float16>(element);
    case DataType::bfloat16: return factor_as<BFloat16>(element);
    case DataType::float32: return factor_as<float>(element);
    case DataType::float64: return factor_as<double>(element);
    case DataType::float8_e4m3: return factor_as<Float8E4M3>(element);
    case DataType::float8_e5m2: return factor_as<Float8E5M2>(element);
    case DataType::complex64: return complex_factor_as<float>(element);
    case DataType::complex128: return complex_factor_as<double>(element);
    case DataType::boolean: break;
  }
  return {};
}

}  // namespace tutti
