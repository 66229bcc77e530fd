// Unique id of a communicator: the address of its rendezvous, and the secret that authenticates its ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace tutti {

// An IP address and port in network format.
struct Address {
  std::uint16_t family = 0;  // 4 or 6; 0: none.
  std::uint16_t port = 0;
  std::uint32_t scope = 0;  // Scope id of a link-local IPv6 address.
  std::array<std::uint8_t, 16> bytes{};

  bool operator==(const Address&) const = default;
};
static_assert(sizeof(Address) == 24);

using CommunicatorId = std::array<std::uint8_t, 16>;
using Secret = std::array<std::uint8_t, 32>;

struct UniqueId {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::uint64_t checksum = 0;  // Over all following fields. Detects damage, not forgery.
  Address address;             // Address of the rendezvous.
  CommunicatorId communicator{};
  Secret secret{};  // Allows its holder to join.
  std::array<std::uint8_t, 40> reserved{};
};
static_assert(sizeof(UniqueId) == 128);

// Creates an id with random parts.
Result<UniqueId> generate_unique_id(const Address& address);
// Returns an error that describes how the id is damaged, or that another version created it.
Status check(const UniqueId& id);

}  // namespace tutti
