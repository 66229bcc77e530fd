#include "src/communicator/peers/mapped_segment.h"

#include <utility>

#include "src/communicator/peers/deferred_frees.h"

namespace tutti {

MappedSegment::~MappedSegment() {
  auto memory = std::make_shared<Segment>(std::move(memory_));  // Shared, because std::function must be copyable.
  free_when_idle([device = device_, memory = std::move(memory), mapped = std::move(mapped_)] {
    for (const HostMemory& each : mapped) device->unmap_host(each);
  });
}

Result<std::byte*> MappedSegment::map(std::size_t offset, std::size_t bytes) {
  TUTTI_ASSERT(offset + bytes <= memory_.size());
  mapped_.push_back(TUTTI_TRY(device_->map_host(memory_.data() + offset, bytes)));
  return mapped_.back().device;
}

}  // namespace tutti
