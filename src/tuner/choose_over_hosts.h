// Choices on GPUs that depend on how ranks are placed on hosts.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

// For the limits of choose_over_hosts() and of choose_for_gpus().
inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kLlChannelBytes = 4 * kKiB;  // Part of a channel of LL: a word per thread.
inline constexpr Rank kFewRanks = 8;                        // As many as a host usually has.
// From so many ranks on a host on, switches are predicted to be faster than lanes.
inline constexpr Rank kMinSwitchRanks = 6;
// Calls with messages between all hosts use the switches of up to so many.
inline constexpr std::size_t kMaxStagedHosts = 64;

// True if no protocol is forced but Simple, which calls in the staging ring and in buffers of peers use.
inline bool permits_simple(const Query& query) { return query.protocol.empty() || query.protocol == "Simple"; }

// Returns the algorithm for ranks of several hosts; empty if it does not depend on hosts.
std::string_view choose_over_hosts(const Query& query);

inline constexpr std::string_view kLlBetweenHosts =
    "LL between hosts is for host_one_shot and host_doubling, and on hosts of up to 8 GPUs for hierarchical "
    "all-gathers and reduce-scatters of up to 4 hosts, and broadcasts and reductions of 2";
// True if there are lanes of LL between hosts, and they serve the algorithm: it sends along rails only, on one lane per
// pair of ranks, and steps that send to several ranks, or receive from several, run as one.
bool has_ll_over_hosts(const Query& query, std::string_view algorithm);
// True if calls between hosts may use the protocol with the algorithm.
inline bool has_protocol_over_hosts(const Query& query, std::string_view algorithm, Protocol protocol) {
  return protocol == Protocol::simple || (protocol == Protocol::ll && has_ll_over_hosts(query, algorithm));
}
// Channels of a call by LL between hosts, each of which has one message per lane. Broadcasts and reductions to a root
// divide a block among the ranks of a host.
std::uint64_t ll_channels_over_hosts(const Query& query);
// True if LL is predicted to be the fastest for the call and serves this algorithm.
bool prefers_ll_over_hosts(const Query& query, std::string_view algorithm);

// True for algorithms that send the whole sum of a host to ranks of other hosts.
bool sends_sums_of_hosts(std::string_view algorithm);

}  // namespace tutti
