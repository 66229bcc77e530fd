#include "src/communicator/peers/host_lanes.h"

#include <utility>

#include "src/communicator/peers/deferred_frees.h"

namespace tutti {

HostLanes::~HostLanes() {
  auto memory = std::make_shared<Segment>(std::move(memory_));  // Shared, because std::function must be copyable.
  free_when_idle([device = device_, memory = std::move(memory), shown = std::move(shown_)] {
    for (const HostMemory& each : shown) device->unmap_host(each);
  });
}

Result<std::byte*> HostLanes::map(std::size_t offset, std::size_t bytes) {
  TUTTI_ASSERT(offset + bytes <= memory_.size());
  shown_.push_back(TUTTI_TRY(device_->map_host(memory_.data() + offset, bytes)));
  return shown_.back().device;
}

}  // namespace tutti
