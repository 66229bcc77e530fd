#include "src/api/call_entry.h"

#include <cstring>

#include "src/communicator/control/board.h"

namespace tutti {
namespace {

Status explain_buffer(const CallEntry& entry, const char* buffer, const std::string& blocks) {
  return invalid_argument(std::string(buffer) + " is null but count is " + std::to_string(entry.count) +
                          ": pass a buffer of " + blocks + "count elements");
}

}  // namespace

Status check_outside_callback(const char* action) {
  if (!in_callback()) return {};
  return invalid_usage(std::string("a callback must not wait, but ") + action +
                       " does; make the call in another thread, or pass a stream to it");
}

Status check_timeout(std::int64_t timeout_ms) {
  if (timeout_ms >= -1) return {};
  return invalid_argument("timeout_ms is " + std::to_string(timeout_ms) + ": pass 0 or more, or -1 for no limit");
}

Status check_type(int type) {
  if (static_cast<std::uint32_t>(type) < kDataTypes) return {};
  return invalid_argument("invalid data type " + std::to_string(type) +
                          "; valid values are 0 (tutti_int8) to 16 (tutti_complex128)");
}

Status check_supported(DataType type, Reduction reduction) {
  if (supports(type, reduction)) return {};
  std::string names;
  for (std::uint32_t i = 0; i < kReductions; ++i) {
    const auto one = static_cast<Reduction>(i);
    if (supports(type, one)) names += (names.empty() ? "" : ", ") + std::string(name(one));
  }
  return invalid_argument(std::string(name(reduction)) + " of " + name(type) + " is not defined; pass one of " + names);
}

Status explain(const CallEntry& entry, const CommHandle& handle) {
  const bool is_message = entry.kind == Kind::send || entry.kind == Kind::recv;
  TUTTI_CHECK_OK(check_type(entry.type));
  if (static_cast<Rank>(entry.root) >= handle.ranks) {
    return invalid_argument(std::string(is_message ? "peer " : "root ") + std::to_string(entry.root) +
                            " is out of range; ranks are 0.." + std::to_string(handle.ranks - 1));
  }
  if (entry.count > kMaxElements) {
    return invalid_argument("count " + std::to_string(entry.count) + " is more elements than any memory holds; " +
                            "it may be a negative or uninitialized value");
  }
  const Problem problem = {
      .collective = entry.collective, .ranks = handle.ranks, .root = static_cast<Rank>(entry.root), .groups = {}};
  const auto blocks = [&](Rank held) { return held > 1 ? std::to_string(held) + " * " : std::string(); };
  if (entry.send == nullptr && sends(entry, static_cast<int>(handle.rank))) {
    return explain_buffer(entry, "send", blocks(is_message ? 1 : input_blocks(problem, handle.rank)));
  }
  return explain_buffer(entry, "recv", blocks(is_message ? 1 : output_blocks(problem, handle.rank)));
}

// A call that fails later than by its arguments makes the communicator fail, which peers see.
tutti_status shown_to_peers(tutti_status answer, CallEntry entry) {
  const NoCancellation until_return;
  const CommHandle* handle = answer == tutti_ok ? nullptr : CommHandles::instance().find(entry.comm);
  Communicator* const runner = handle == nullptr ? nullptr : handle->runner.load(std::memory_order_acquire);
  if (runner == nullptr || runner->board().failed()) return answer;
  (void)caught([&]() -> Status {
    std::string text = last_error_of_thread();
    const bool is_message = entry.kind == Kind::send || entry.kind == Kind::recv;
    // Earlier calls of a group or in a stream have no number yet.
    const bool is_numbered = !is_message && !in_group() && handle->shared->queued.load(std::memory_order_acquire) == 0;
    const std::string number = is_numbered ? " #" + std::to_string(runner->board().last(handle->rank) + 1) : "";
    if (text.starts_with(entry.function)) text.insert(std::strlen(entry.function), number);
    runner->report_rejection(is_message ? RejectedCall::message : RejectedCall::collective, text);
    return {};
  });
  return answer;
}

}  // namespace tutti
