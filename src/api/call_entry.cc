#include "src/api/call_entry.h"

namespace tutti {
namespace {

Status explain_buffer(const Call& call, const char* buffer, const std::string& blocks) {
  return invalid_argument(std::string(buffer) + " is null but count is " + std::to_string(call.count) +
                          ": pass a buffer of " + blocks + "count elements");
}

}  // namespace

Status explain(const CallEntry& entry, const Door& door, const Call& call) {
  const bool is_message = call.kind == Kind::send || call.kind == Kind::recv;
  if (static_cast<std::uint32_t>(entry.type) >= kDataTypes) {
    return invalid_argument("type " + std::to_string(entry.type) + " is none: pass tutti_int8 ... tutti_float8_e5m2");
  }
  if (call.root >= door.ranks) {
    return invalid_argument(std::string(is_message ? "peer " : "root ") + std::to_string(entry.root) +
                            " is no rank: there are " + std::to_string(door.ranks) + ", counted from 0");
  }
  if (call.count > kMostElements) {
    return invalid_argument("count " + std::to_string(call.count) + " is more elements than any memory holds: " +
                            "is it a negative number, or bytes of a wrong variable?");
  }
  const Problem problem = {.collective = call.collective, .ranks = door.ranks, .root = call.root, .groups = {}};
  const auto blocks = [&](Rank held) { return held > 1 ? std::to_string(held) + " * " : std::string(); };
  if (call.input == nullptr && sends(call, door.rank)) {
    return explain_buffer(call, "send", blocks(is_message ? 1 : input_blocks(problem, door.rank)));
  }
  return explain_buffer(call, "recv", blocks(is_message ? 1 : output_blocks(problem, door.rank)));
}

}  // namespace tutti
