// How long the pieces are that a call is cut into: a table of what was measured on host memory, which predictions take
// as given. Slots must hold them, and caches the slots.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

inline constexpr std::uint64_t kLinesBytes = 560;  // Ten lines, so 512 bytes and some.

// In bytes, of the longest message. Not for devices.
std::uint64_t piece_bytes(const Query& query, std::string_view algorithm, Protocol protocol);

}  // namespace tutti
