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
};
inline constexpr std::uint32_t kDataTypes = 14;

enum class Reduction : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,          // Sum, divided by the number of ranks when the fold is complete; integers truncate.
  pre_mul_sum,  // Sum of each rank's input times that rank's scalar.
};
inline constexpr std::uint32_t kReductions = 6;

constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: return 1;
    case DataType::int16:
    case DataType::uint16:
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: return 8;
  }
  return 0;
}

const char* name(DataType type);  // "float32". nullptr for an invalid value.
const char* name(Reduction reduction);

}  // namespace tutti
