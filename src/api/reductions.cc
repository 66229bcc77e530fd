// Pre-multiplied sums. Each has a scalar of the caller's type and a number.
#include <atomic>
#include <cstddef>
#include <cstring>

#include "src/api/call_entry.h"
#include "src/api/comm_handle.h"
#include "src/api/errors.h"
#include "src/base/factor.h"

namespace tutti {
namespace {

PreMulSum pre_mul_sum_of(const void* scalar, DataType type) {
  alignas(std::max_align_t) std::byte element[sizeof(Complex<double>)];
  std::memcpy(element, scalar, size_of(type));  // The program's scalar may be unaligned.
  const Factor factor = factor_of(type, element);
  return {.type = type,
          .scalar = factor.scale,
          .imaginary_scalar = factor.imaginary_scale,
          .integer_scalar = factor.integer_scale};
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
