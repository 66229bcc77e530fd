#include "src/tuner/channels.h"

#include <algorithm>

namespace tutti {

bool is_on_rails(const Query& query, std::string_view algorithm) {
  return std::any_of(query.on_rails.begin(), query.on_rails.end(),
                     [=](const Algorithm* each) { return each->name() == algorithm; });
}

std::uint32_t lane_channels(const Query& query, std::string_view algorithm) {
  return is_on_rails(query, algorithm) ? std::max(query.rail_channels, query.lane_channels) : query.lane_channels;
}

std::uint32_t usable_channels(const Query& query, std::uint32_t existing) {
  const std::uint32_t available = std::min(query.thread_blocks, existing);
  const std::uint32_t requested = query.channels != 0 ? query.channels : query.max_channels;
  return requested != 0 ? std::min(available, requested) : available;
}

}  // namespace tutti
