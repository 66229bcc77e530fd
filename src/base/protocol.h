// How a message says that it is there.
#pragma once

#include <cstdint>

#include "src/base/platform.h"

namespace tutti {

enum class Protocol : std::uint8_t {
  bulk,   // Data in slots, then a counter.
  lines,  // Small messages: each line of 64 bytes has a flag of its own, so that data and notice are one transfer. On a
          // device, each word of 16 bytes.
  rows,   // Small messages on a device: each row of 128 bytes.
};

constexpr const char* name(Protocol protocol) {
  if (protocol == Protocol::bulk) return "bulk";
  return protocol == Protocol::lines ? "lines" : "rows";
}

// Whether messages tell of themselves, and are taken out of their slots before they are used.
TUTTI_HOST_DEVICE constexpr bool is_small(Protocol protocol) { return protocol != Protocol::bulk; }

}  // namespace tutti
