#include "src/api/residuals.h"

#include <algorithm>
#include <functional>
#include <string>

#include "src/api/call_entry.h"
#include "src/api/comm_handle.h"
#include "src/api/errors.h"

namespace tutti {
namespace {

struct Span {
  const std::byte* begin;
  const std::byte* end;
};

// Only std::less orders pointers to different objects.
bool before(const std::byte* a, const std::byte* b) { return std::less<>()(a, b); }
bool overlap(const Span& a, const Span& b) { return before(a.begin, b.end) && before(b.begin, a.end); }

Span buffer_of(const Residual& residual) {
  return {residual.buffer, residual.buffer + residual.count * size_of(residual.type)};
}

Span values_of(const Residual& residual) {
  const auto* begin = reinterpret_cast<const std::byte*>(residual.values);
  return {begin, begin + residual.count * sizeof(float)};
}

Status check_attaching(const void* buffer, std::size_t count, tutti_type type, const float* residual) {
  if (buffer == nullptr || residual == nullptr)
    return invalid_argument(std::string(buffer == nullptr ? "buffer" : "residual") + " is null: pass " +
                            std::to_string(count) + " elements");
  if (count == 0 || count > kMaxElements)
    return invalid_argument("count is " + std::to_string(count) + ": pass the elements of the buffer");
  if (static_cast<std::uint32_t>(type) >= kDataTypes || !is_compressible(static_cast<DataType>(type)))
    return invalid_argument(
        "the data type does not support compression: pass tutti_float32, tutti_float16 or "
        "tutti_bfloat16");
  const std::size_t alignment = size_of(static_cast<DataType>(type));
  if (reinterpret_cast<std::uintptr_t>(buffer) % alignment == 0 &&
      reinterpret_cast<std::uintptr_t>(residual) % alignof(float) == 0)
    return {};
  return invalid_argument("buffer and residual must be aligned to their element sizes");
}

Status attach(SharedComm& shared, const Residual& made) {
  const char* const advice = ": each buffer has one residual, apart from all buffers; detach what was attached before";
  if (overlap(buffer_of(made), values_of(made)))
    return invalid_argument("the residual overlaps the buffer: pass memory of its own");
  for (const Residual& other : shared.residuals) {
    if (overlap(buffer_of(made), buffer_of(other)))
      return invalid_argument("the buffer overlaps one that has a residual" + std::string(advice));
    if (overlap(values_of(made), values_of(other)) || overlap(values_of(made), buffer_of(other)) ||
        overlap(buffer_of(made), values_of(other)))
      return invalid_argument("the residual overlaps another one or its buffer" + std::string(advice));
  }
  shared.residuals.push_back(made);
  shared.has_residuals = true;
  return {};
}

}  // namespace

Status find_residual(const std::vector<Residual>& residuals, Rank rank, Rank ranks, Call& call) {
  const bool sums = call.reduction == Reduction::sum || call.reduction == Reduction::avg;
  const bool may_round =
      call.kind == Kind::collective && reduces(call.collective) && sums && is_compressible(call.type);
  if (!may_round || call.count == 0) return {};
  const Problem problem = {.collective = call.collective, .ranks = ranks, .root = call.root, .groups = {}};
  const std::uint64_t elements = input_blocks(problem, rank) * call.count;
  const Span input = {call.input, call.input + elements * size_of(call.type)};
  for (const Residual& residual : residuals) {
    const Span buffer = buffer_of(residual);
    if (!overlap(input, buffer)) continue;
    if (before(input.begin, buffer.begin) || before(buffer.end, input.end))
      return invalid_usage("send lies only partly in a buffer of " + std::to_string(residual.count) +
                           " elements that has a residual: sum what is in it by itself, or detach the residual");
    const auto offset = static_cast<std::uint64_t>(input.begin - buffer.begin);
    if (residual.type != call.type || offset % size_of(call.type) != 0)
      return invalid_usage(std::string("send lies in a buffer of ") + name(residual.type) +
                           " that has a residual, and the call is of " + name(call.type) +
                           " or begins within an element: detach the residual, and attach one of this type");
    call.residual = residual.values + offset / size_of(call.type);
    return {};
  }
  return {};
}

}  // namespace tutti

extern "C" {

tutti_status tutti_residual_attach(const void* buffer, size_t count, tutti_type type, float* residual,
                                   tutti_comm comm) {
  return tutti::guarded("tutti_residual_attach", [&]() -> tutti::Status {
    TUTTI_CHECK_OK(tutti::check_attaching(buffer, count, type, residual));
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    if (handle->runner == nullptr) return tutti::no_runner(*handle);
    return tutti::attach(*handle->shared, {.buffer = static_cast<const std::byte*>(buffer),
                                           .count = count,
                                           .type = static_cast<tutti::DataType>(type),
                                           .values = residual});
  });
}

tutti_status tutti_residual_detach(const void* buffer, tutti_comm comm) {
  return tutti::guarded("tutti_residual_detach", [&]() -> tutti::Status {
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    tutti::SharedComm& shared = *handle->shared;
    const auto is_it = [&](const tutti::Residual& made) { return made.buffer == buffer; };
    const bool was_there = std::erase_if(shared.residuals, is_it) == 1;
    shared.has_residuals = !shared.residuals.empty();
    if (was_there) return {};
    return tutti::invalid_argument("buffer has no residual on this communicator: pass the address that was attached");
  });
}

}  // extern "C"
