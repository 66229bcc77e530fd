// Channels on GPUs that have lanes between the ranks of a call.
#pragma once

#include "src/tuner/choose.h"

namespace tutti {

// By Query::on_rails.
RemotePeers remote_peers(const Query& query, std::string_view algorithm);
// Channels with lanes between all ranks that communicate in the algorithm.
std::uint32_t lane_channels(const Query& query, std::string_view algorithm);
// Channels that a call can use of those that exist.
std::uint32_t usable_channels(const Query& query, std::uint32_t existing);
// Bytes that LL lanes from one rank to another hold on all channels of a call.
std::uint64_t ll_lane_bytes(const Query& query);

// Maximum data of a slot of LL lanes.
inline constexpr std::uint64_t kLlChunkBytes = 4 * 1024;

}  // namespace tutti
