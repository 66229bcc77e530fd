// The name of a communicator to be: where its ranks meet, and the secret by which they know each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace tutti {

// An IP address and port, as it travels.
struct Address {
  std::uint16_t family = 0;  // 4 or 6; 0: none.
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // Of a link-local v6 address.
  std::array<std::uint8_t, 16> bytes{};

  bool operator==(const Address&) const = default;
};
static_assert(sizeof(Address) == 24);

using CommunicatorId = std::array<std::uint8_t, 16>;
using Secret = std::array<std::uint8_t, 32>;

struct UniqueId {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::uint64_t checksum = 0;  // Of all that follows: against damage, not against forgery.
  Address address;             // Of the rendezvous.
  CommunicatorId communicator{};
  Secret secret{};  // Whoever has it may join.
  std::array<std::uint8_t, 40> reserved{};
};
static_assert(sizeof(UniqueId) == 128);

// A fresh id with random parts.
Result<UniqueId> draw_unique_id(const Address& address);
// Says what is wrong with an id that was damaged, or made by another version.
Status check(const UniqueId& id);

}  // namespace tutti
