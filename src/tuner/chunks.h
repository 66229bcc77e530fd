// Chunk sizes, and size limits of LL and mapped memory; predictions take them as given. Measured on host memory. The
// best sizes depend on caches, which the cost model does not describe.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

inline constexpr std::uint64_t kLlBytes = 560;  // Ten lines, for 512 bytes and some more.
// In one-way traffic, lines come from alternating slots and not from the L1 cache.
inline constexpr std::uint64_t kOneWayLlBytes = 256;
// With oversubscribed cores, ranks do not poll for lines. Two lines are less to transfer than a counter and data; three
// are not.
inline constexpr std::uint64_t kOversubscribedLlBytes = 112;
// Minimum total size of all blocks. Below, mapped memory has no advantage, since small data are copied within the L1
// cache.
inline constexpr std::uint64_t kMappedBytes = 16 * 1024;

// Maximum message size in bytes. Host memory only.
std::uint64_t chunk_bytes(const Query& query, std::string_view algorithm, Protocol protocol);

}  // namespace tutti
