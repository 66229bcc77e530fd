#include "perf/tool/elements.h"

#include <bit>

namespace perf {
namespace {

// Encodes a positive integer as a float with `mantissa` stored bits. The integer is exact, so nothing is rounded.
std::uint64_t float_bits(std::uint32_t value, std::uint32_t mantissa, std::uint32_t bias) {
  if (value == 0) return 0;
  const auto exponent = static_cast<std::uint32_t>(std::bit_width(value)) - 1;
  const std::uint64_t fraction = value - (1ULL << exponent);
  const std::uint64_t shifted =
      mantissa >= exponent ? fraction << (mantissa - exponent) : fraction >> (exponent - mantissa);
  return (static_cast<std::uint64_t>(exponent + bias) << mantissa) | shifted;
}

}  // namespace

const std::vector<Element>& all_elements() {
  static const std::vector<Element> elements = {
      {"int8", "int8", tutti_int8, 1, 127},
      {"uint8", "uint8", tutti_uint8, 1, 127},
      {"int16", "int16", tutti_int16, 2, 4096},
      {"uint16", "uint16", tutti_uint16, 2, 4096},
      {"int32", "int32", tutti_int32, 4, 4096},
      {"uint32", "uint32", tutti_uint32, 4, 4096},
      {"int64", "int64", tutti_int64, 8, 4096},
      {"uint64", "uint64", tutti_uint64, 8, 4096},
      {"half", "float16", tutti_float16, 2, 2048},
      {"bfloat16", "bfloat16", tutti_bfloat16, 2, 256},
      {"float", "float32", tutti_float32, 4, 4096},
      {"double", "float64", tutti_float64, 8, 4096},
      {"f8e4m3", "float8_e4m3", tutti_float8_e4m3, 1, 16},
      {"f8e5m2", "float8_e5m2", tutti_float8_e5m2, 1, 8},
      {"bool", "bool", tutti_bool, 1, 1},
      {"complex64", "complex64", tutti_complex64, 8, 4096},
      {"complex128", "complex128", tutti_complex128, 16, 4096},
  };
  return elements;
}

const std::vector<Operation>& all_operations() {
  static const std::vector<Operation> operations = {
      {"sum", tutti_sum, false},   {"prod", tutti_prod, false}, {"max", tutti_max, false},
      {"min", tutti_min, false},   {"avg", tutti_avg, false},   {"mulsum", tutti_sum, true},
      {"band", tutti_band, false}, {"bor", tutti_bor, false},   {"bxor", tutti_bxor, false},
  };
  return operations;
}

bool supports(const Element& element, const Operation& operation, bool on_gpu) {
  const bool is_bitwise = operation.reduction >= tutti_band;
  const bool sums = !operation.is_mulsum && (operation.reduction == tutti_sum || operation.reduction == tutti_avg);
  if (element.type == tutti_bool) return !operation.is_mulsum && operation.reduction != tutti_avg;
  if (element.type > tutti_bool) return sums || (!on_gpu && (operation.is_mulsum || operation.reduction == tutti_prod));
  return element.type < tutti_float16 || !is_bitwise;
}

std::uint64_t bits_of(const Element& element, std::uint32_t value) {
  switch (element.type) {
    case tutti_float16: return float_bits(value, 10, 15);
    case tutti_bfloat16: return float_bits(value, 7, 127);
    case tutti_float32:
    case tutti_complex64: return float_bits(value, 23, 127);
    case tutti_float64:
    case tutti_complex128: return float_bits(value, 52, 1023);
    case tutti_float8_e4m3: return float_bits(value, 3, 7);
    case tutti_float8_e5m2: return float_bits(value, 2, 15);
    default: return value;
  }
}

}  // namespace perf
