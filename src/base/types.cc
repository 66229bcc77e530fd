#include "src/base/types.h"

namespace tutti {

const char* name(DataType type) {
  constexpr const char* names[kDataTypes] = {
      "int8",     "uint8",   "int16",   "uint16",      "int32",       "uint32", "int64",     "uint64",    "float16",
      "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2", "bool",   "complex64", "complex128"};
  const auto index = static_cast<std::uint32_t>(type);
  return index < kDataTypes ? names[index] : nullptr;
}

const char* name(Reduction reduction) {
  constexpr const char* names[kReductions] = {"sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "pre_mul_sum"};
  const auto index = static_cast<std::uint32_t>(reduction);
  return index < kReductions ? names[index] : nullptr;
}

}  // namespace tutti
