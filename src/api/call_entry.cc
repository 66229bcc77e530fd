#include "src/api/call_entry.h"

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

}  // namespace tutti
