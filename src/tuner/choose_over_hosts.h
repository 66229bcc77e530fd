// Choices on GPUs that depend on how ranks are placed on hosts, and channels of lanes between hosts.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr Rank kFewRanks = 8;

// Returns the algorithm for ranks of several hosts; empty if it does not depend on hosts.
std::string_view choose_over_hosts(const Query& query);

// True for algorithms whose messages hold the data of a whole call.
bool sends_whole_sums(std::string_view algorithm);

bool is_on_rails(const Query& query, std::string_view algorithm);
// Channels with lanes between all ranks that communicate in the algorithm.
std::uint32_t lane_channels(const Query& query, std::string_view algorithm);
// Channels that a call can use of those that exist.
std::uint32_t usable_channels(const Query& query, std::uint32_t existing);

}  // namespace tutti
