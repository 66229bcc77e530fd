// Pre-multiplied sums. Each has a scalar of the caller's type and a number.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/api/call_entry.h"
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

template <typename T>
void set_complex(PreMulSum& made, const void* scalar) {
  const auto parts = read<std::array<T, 2>>(scalar);
  made.scalar = parts[0];
  made.imaginary_scalar = parts[1];
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
    case DataType::complex64: set_complex<float>(made, scalar); break;
    case DataType::complex128: set_complex<double>(made, scalar); break;
    case DataType::boolean: break;  // Refused before.
  }
  return made;
}

Status check_making(const void* scalar, tutti_type type, const tutti_reduction* reduction) {
  if (scalar == nullptr) return invalid_argument("scalar is null: pass one element of the type");
  if (reduction == nullptr) return invalid_argument("reduction is null: pass a pointer to a tutti_reduction");
  TUTTI_CHECK_OK(check_type(type));
  return check_supported(static_cast<DataType>(type), Reduction::pre_mul_sum);
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
    const std::size_t alignment = tutti::alignment_of(of_type);
    if (reinterpret_cast<std::uintptr_t>(scalar) % alignment != 0) {
      return tutti::invalid_argument("scalar is not aligned to " + std::to_string(alignment) + " bytes, as " +
                                     tutti::name(of_type) + " needs it");
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
        " was not made for this communicator, or is destroyed; tutti_sum ... tutti_bxor never are");
  });
}

}  // extern "C"
