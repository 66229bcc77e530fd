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
  return std::max(peers == RemotePeers::rail ? channels.rail : channels.partners, query.lane_channels);
}

std::uint32_t usable_channels(const Query& query, std::uint32_t existing) {
  const std::uint32_t available = std::min(query.thread_blocks, existing);
  const std::uint32_t requested = query.channels != 0 ? query.channels : query.max_channels;
  return requested != 0 ? std::min(available, requested) : available;
}

}  // namespace tutti
