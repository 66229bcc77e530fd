// Pre-multiplied sums. Each has a scalar of the caller's type and a number.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/api/comm_handle.h"
#include "src/api/errors.h"

namespace tutti {
namespace {

struct Format {  // Format of a small binary float.
  std::uint32_t exponent_bits, mantissa_bits;
  bool has_infinity;
};

double decode(std::uint32_t bits, const Format& format) {
  const std::uint32_t exponent_ones = (1U << format.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t exponent = bits >> format.mantissa_bits & exponent_ones;
  const double sign = bits >> (format.exponent_bits + format.mantissa_bits) & 1 ? -1 : 1;
  const int bias = static_cast<int>(exponent_ones / 2);
  const int scale = static_cast<int>(format.mantissa_bits);
  const std::uint32_t all_ones = (1U << format.mantissa_bits) - 1;
  if (format.has_infinity && exponent == exponent_ones) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (!format.has_infinity && exponent == exponent_ones && mantissa == all_ones) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - scale);
  return sign * std::ldexp((1U << format.mantissa_bits) + mantissa, static_cast<int>(exponent) - bias - scale);
}

template <typename T>
T read(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

PreMulSum pre_mul_sum_of(const void* scalar, DataType type) {
  PreMulSum made = {.type = type};
  switch (type) {
    case DataType::int8: made.integer_scalar = read<std::int8_t>(scalar); break;
    case DataType::uint8: made.integer_scalar = read<std::uint8_t>(scalar); break;
    case DataType::int16: made.integer_scalar = read<std::int16_t>(scalar); break;
    case DataType::uint16: made.integer_scalar = read<std::uint16_t>(scalar); break;
    case DataType::int32: made.integer_scalar = read<std::int32_t>(scalar); break;
    case DataType::uint32: made.integer_scalar = read<std::uint32_t>(scalar); break;
    case DataType::int64:
    case DataType::uint64: made.integer_scalar = read<std::int64_t>(scalar); break;
    case DataType::float16: made.scalar = decode(read<std::uint16_t>(scalar), {5, 10, true}); break;
    case DataType::bfloat16: made.scalar = decode(read<std::uint16_t>(scalar), {8, 7, true}); break;
    case DataType::float32: made.scalar = read<float>(scalar); break;
    case DataType::float64: made.scalar = read<double>(scalar); break;
    case DataType::float8_e4m3: made.scalar = decode(read<std::uint8_t>(scalar), {4, 3, false}); break;
    case DataType::float8_e5m2: made.scalar = decode(read<std::uint8_t>(scalar), {5, 2, true}); break;
  }
  return made;
}

Status check_making(const void* scalar, tutti_type type, const tutti_reduction* reduction) {
  if (scalar == nullptr) return invalid_argument("scalar is null: pass one element of the type");
  if (reduction == nullptr) return invalid_argument("reduction is null: pass where to put its number");
  if (static_cast<std::uint32_t>(type) < kDataTypes) return {};
  return invalid_argument("invalid data type " + std::to_string(type) +
                          "; valid values are 0 (tutti_int8) to 13 (tutti_float8_e5m2)");
}

// Numbers are unique in the process, so that another communicator's reduction is never valid.
tutti_reduction next_number() {
  static std::atomic<tutti_reduction> next = kFirstPreMulSum;
  return next++;
}

tutti_reduction keep(const CommHandle& handle, PreMulSum made) {
  made.number = next_number();
  handle.shared->reductions.push_back(made);
  return made.number;
}

}  // namespace
}  // namespace tutti

extern "C" {

tutti_status tutti_reduction_create_pre_mul_sum(const void* scalar, tutti_type type, tutti_comm comm,
                                                tutti_reduction* reduction) {
  return tutti::guarded("tutti_reduction_create_pre_mul_sum", [&]() -> tutti::Status {
    TUTTI_CHECK_OK(tutti::check_making(scalar, type, reduction));
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    *reduction = tutti::keep(*handle, tutti::pre_mul_sum_of(scalar, static_cast<tutti::DataType>(type)));
    return {};
  });
}

tutti_status tutti_reduction_create_pre_mul_sum_at(const void* scalar, tutti_type type, tutti_comm comm,
                                                   tutti_reduction* reduction) {
  return tutti::guarded("tutti_reduction_create_pre_mul_sum_at", [&]() -> tutti::Status {
    TUTTI_CHECK_OK(tutti::check_making(scalar, type, reduction));
    const auto of_type = static_cast<tutti::DataType>(type);
    if (reinterpret_cast<std::uintptr_t>(scalar) % tutti::size_of(of_type) != 0) {
      return tutti::invalid_argument("scalar is not aligned to the " + std::to_string(tutti::size_of(of_type)) +
                                     " bytes of an element");
    }
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    *reduction = tutti::keep(*handle, {.type = of_type, .factor = static_cast<const std::byte*>(scalar)});
    return {};
  });
}

tutti_status tutti_reduction_destroy(tutti_reduction reduction, tutti_comm comm) {
  return tutti::guarded("tutti_reduction_destroy", [&]() -> tutti::Status {
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    tutti::SharedComm& shared = *handle->shared;
    const auto is_it = [&](const tutti::PreMulSum& made) { return made.number == reduction; };
    if (std::erase_if(shared.reductions, is_it) == 1) return {};
    return tutti::invalid_argument(
        "reduction " + std::to_string(reduction) +
        " was not made for this communicator, or is destroyed; tutti_sum ... tutti_avg never are");
  });
}

}  // extern "C"
