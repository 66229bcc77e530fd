#include "src/communicator/call/message_signature.h"

#include <algorithm>

namespace tutti {
namespace {

// 5 bits of type, then the count. For 2^26 elements or more, a bit and a hash of the count.
constexpr std::uint32_t kCountBits = 26;
constexpr std::uint32_t kManyElements = 1U << kCountBits;
static_assert(kDataTypes <= 32);

std::string described(Kind kind, const std::string& what, Rank peer) {
  const bool sends = kind == Kind::send;
  return (sends ? "send(" : "recv(") + what + (sends ? ", to rank " : ", from rank ") + std::to_string(peer) + ")";
}

}  // namespace

std::uint32_t message_signature(const Call& call) {
  const auto type = static_cast<std::uint32_t>(call.type) << (kCountBits + 1);
  if (call.count < kManyElements) return type | static_cast<std::uint32_t>(call.count);
  return type | kManyElements | static_cast<std::uint32_t>(call.count * 0x9e3779b97f4a7c15ULL >> (64 - kCountBits));
}

std::uint32_t unequal_signature(DataType type) { return 0x5eed0a2aU + static_cast<std::uint32_t>(type); }

std::uint64_t slice_elements(std::uint32_t slot_bytes, std::uint64_t element_bytes) {
  return std::max<std::uint64_t>(slot_bytes / element_bytes / 2, 1);
}

std::uint64_t slices_of(std::uint32_t signature, std::uint32_t slot_bytes) {
  const std::uint32_t type = signature >> (kCountBits + 1);
  if (type >= kDataTypes) return 1;
  const std::uint64_t max = slice_elements(slot_bytes, size_of(static_cast<DataType>(type)));
  return std::max<std::uint64_t>(((signature & (kManyElements - 1)) + max - 1) / max, 1);
}

std::string describe_elements(std::uint64_t count, DataType type) { return std::to_string(count) + " " + name(type); }

std::string describe_elements(std::uint32_t signature) {
  const auto type = static_cast<DataType>(signature >> (kCountBits + 1));
  const bool many = (signature & kManyElements) != 0;
  if (static_cast<std::uint32_t>(type) >= kDataTypes) return "nothing known";
  return many ? "another count, of 2^26 or more " + std::string(name(type))
              : describe_elements(signature & (kManyElements - 1), type);
}

std::string describe_message(const Call& call) {
  return described(call.kind, describe_elements(call.count, call.type), call.root);
}

std::string describe_send(std::uint32_t signature, Rank receiver) {
  return described(Kind::send, describe_elements(signature), receiver);
}

}  // namespace tutti
