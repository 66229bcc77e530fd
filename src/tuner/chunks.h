// What predictions take as given: how long the chunks are that a call is cut into, and the limits of lines and of
// mapped memory. A table of what was measured on host memory; it is about caches, of which the model knows nothing.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

inline constexpr std::uint64_t kLlBytes = 560;  // Ten lines, so 512 bytes and some.
// Where all data goes one way, its lines come from slots that take turns, and no longer from the nearest cache.
inline constexpr std::uint64_t kOneWayLlBytes = 256;
// Where ranks share cores besides, nobody waits for a line: two are less to move than a counter and data, three are
// not.
inline constexpr std::uint64_t kOversubscribedLlBytes = 112;
// Of all blocks. Below, mapped memory does not pay: what is small is copied within the nearest cache.
inline constexpr std::uint64_t kMappedBytes = 16 * 1024;

// In bytes, of the longest message. Not for devices.
std::uint64_t chunk_bytes(const Query& query, std::string_view algorithm, Protocol protocol);

}  // namespace tutti
