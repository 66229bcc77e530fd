// Data types and reductions. Plans do not depend on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

enum class DataType : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2,
  boolean,     // One byte: 0 or 1.
  complex64,   // Two float32: real and imaginary part.
  complex128,  // Two float64.
};
inline constexpr std::uint32_t kDataTypes = 17;

enum class Reduction : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,  // Sum, divided by the number of ranks when the fold is complete; integers truncate.
  band,
  bor,
  bxor,
  pre_mul_sum,  // Sum of each rank's input times that rank's scalar.
};
inline constexpr std::uint32_t kReductions = 9;

constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
    case DataType::boolean: return 1;
    case DataType::int16:
    case DataType::uint16:
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
    case DataType::complex64: return 8;
    case DataType::complex128: return 16;
  }
  return 0;
}

constexpr bool is_complex(DataType type) { return type == DataType::complex64 || type == DataType::complex128; }

// True if messages of this type can be compressed.
constexpr bool is_compressible(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::bfloat16;
}

// Alignment of buffers on GPUs: that of an element, or of its parts.
constexpr std::size_t alignment_of(DataType type) { return is_complex(type) ? size_of(type) / 2 : size_of(type); }

constexpr bool is_bitwise(Reduction reduction) {
  return reduction == Reduction::band || reduction == Reduction::bor || reduction == Reduction::bxor;
}

// True if elements of `type` can be reduced by `reduction`.
constexpr bool supports(DataType type, Reduction reduction) {
  const bool orders = reduction == Reduction::min || reduction == Reduction::max;
  if (type == DataType::boolean) return reduction != Reduction::avg && reduction != Reduction::pre_mul_sum;
  if (is_complex(type)) return !orders && !is_bitwise(reduction);
  return type < DataType::float16 || !is_bitwise(reduction);
}

const char* name(DataType type);  // "float32". nullptr for an invalid value.
const char* name(Reduction reduction);

}  // namespace tutti
