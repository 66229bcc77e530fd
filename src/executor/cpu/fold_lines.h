// How far ahead folds fetch lines, in bytes.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::uint64_t kCacheLineBytes = 64;
// Stores wait for their lines in order; fetched ahead, many come at once. The lines of a slot are where they were read
// last: in another core's cache. Small folds are over before that helps.
inline constexpr std::uint64_t kAheadBytes = 1024;
inline constexpr std::uint64_t kPreparedBytes = 8192;
inline constexpr std::uint64_t kFetchedAheadBytes = 8192;  // From memory, which answers late.

}  // namespace tutti
