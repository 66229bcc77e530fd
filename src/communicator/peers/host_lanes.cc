#include "src/communicator/peers/host_lanes.h"

namespace tutti {

HostLanes::~HostLanes() {
  for (const HostMemory& memory : shown_) device_->unmap_host(memory);
}

Result<std::byte*> HostLanes::map(std::size_t offset, std::size_t bytes) {
  TUTTI_ASSERT(offset + bytes <= memory_.size());
  shown_.push_back(TUTTI_TRY(device_->map_host(memory_.data() + offset, bytes)));
  return shown_.back().device;
}

}  // namespace tutti
