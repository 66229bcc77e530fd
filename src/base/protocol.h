// Protocols: how a reader detects that a message has arrived.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/platform.h"

namespace tutti {

enum class Protocol : std::uint8_t {
  simple,  // Data in slots, then a counter.
  // Small messages: each line of 64 bytes has its own flag, so that data and notification are one transfer. On a
  // device, each half of a word of 16 bytes has a flag.
  ll,
  ll128,  // Medium messages on a device: one flag per 128 bytes.
};

constexpr const char* name(Protocol protocol) {
  if (protocol == Protocol::simple) return "Simple";
  return protocol == Protocol::ll ? "LL" : "LL128";
}

// Canonical spelling of a protocol name in upper or lower case; other texts unchanged.
std::string canonical_protocol(std::string_view text);

// True if messages carry their own flags and are copied out of their slots before use.
TUTTI_HOST_DEVICE constexpr bool has_inline_flags(Protocol protocol) { return protocol != Protocol::simple; }

}  // namespace tutti
