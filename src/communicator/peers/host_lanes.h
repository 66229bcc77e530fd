// Memory of the host for lanes between devices that do not reach each other: one segment for all ranks of a
// communicator, of which each shows its device what it writes or reads.
#pragma once

#include <memory>
#include <vector>

#include "src/executor/thread_block/device.h"
#include "transports/shm/segment.h"

namespace tutti {

// Lanes of one rank in host memory. One thread at a time. The destructor may wait for the device, as
// Device::unmap_host() may.
class HostLanes {
 public:
  HostLanes(std::shared_ptr<Device> device, Segment memory) : device_(std::move(device)), memory_(std::move(memory)) {}
  ~HostLanes();
  HostLanes(const HostLanes&) = delete;
  HostLanes& operator=(const HostLanes&) = delete;

  // Whole pages, as the device sees them. Shown pair by pair: of two ranks of a process each may show what it needs of
  // the same pages, but not more at once than the other.
  Result<std::byte*> show(std::size_t offset, std::size_t bytes);

 private:
  const std::shared_ptr<Device> device_;
  Segment memory_;
  std::vector<HostMemory> shown_;
};

}  // namespace tutti
