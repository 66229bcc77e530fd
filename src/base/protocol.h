// How a message says that it is there.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

enum class Protocol : std::uint8_t {
  simple,  // Data in slots, then a counter.
  ll,     // Small messages: each line of 64 bytes has a flag of its own, so that data and notice are one transfer. On a
          // device, each word of 16 bytes.
  ll128,  // Small messages on a device: each row of 128 bytes.
};

constexpr const char* name(Protocol protocol) {
  if (protocol == Protocol::simple) return "Simple";
  return protocol == Protocol::ll ? "LL" : "LL128";
}

// Whether messages tell of themselves, and are taken out of their slots before they are used.
TUTTI_HOST_DEVICE constexpr bool is_small(Protocol protocol) { return protocol != Protocol::simple; }

}  // namespace tutti
