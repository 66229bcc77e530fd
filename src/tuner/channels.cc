#include "src/tuner/channels.h"

#include <algorithm>

namespace tutti {

RemotePeers remote_peers(const Query& query, std::string_view algorithm) {
  for (const auto& [each, peers] : query.on_rails)
    if (each->name() == algorithm) return peers;
  return RemotePeers::all;
}

std::uint32_t lane_channels(const Query& query, std::string_view algorithm) {
  const RemotePeers peers = remote_peers(query, algorithm);
  if (peers == RemotePeers::all) return query.lane_channels;
  const RemoteChannels& channels = query.remote_channels;
  const std::uint32_t on_rails = peers == RemotePeers::rail ? channels.rail : channels.partners;
  const std::uint32_t in_hosts = is_staged_over_hosts(algorithm) ? on_rails : query.local_channels;
  return std::max(std::min(on_rails, in_hosts), query.lane_channels);
}

std::uint32_t usable_channels(const Query& query, std::uint32_t existing) {
  const std::uint32_t available = std::min(query.thread_blocks, existing);
  const std::uint32_t requested = query.channels != 0 ? query.channels : query.max_channels;
  return requested != 0 ? std::min(available, requested) : available;
}

std::uint64_t ll_lane_bytes(const Query& query) {
  return usable_channels(query, query.lane_channels) * kDeviceLaneSlots * std::min(query.ll_slot_bytes, kLlChunkBytes);
}

}  // namespace tutti
