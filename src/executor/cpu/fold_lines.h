// Prefetch distances of folds, in bytes.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::uint64_t kCacheLineBytes = 64;
// Stores retire in order and wait for their lines; prefetching overlaps these misses. Lines of a slot are in the cache
// of the core that read them last. Small folds end before prefetching pays.
inline constexpr std::uint64_t kAheadBytes = 1024;
inline constexpr std::uint64_t kPreparedBytes = 8192;
inline constexpr std::uint64_t kFetchedAheadBytes = 8192;  // For memory, which has a longer latency.

}  // namespace tutti
