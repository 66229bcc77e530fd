// Lanes in host memory, between devices that cannot access each other. The ranks of a host share one segment; each maps
// the pages that it writes or reads for its device.
#pragma once

#include <memory>
#include <vector>

#include "src/executor/thread_block/device.h"
#include "transports/shm/segment.h"

namespace tutti {

// Lanes of one rank in host memory. One thread at a time. The memory is unmapped and freed when no call of the process
// is in flight (deferred_frees.h).
class HostLanes {
 public:
  HostLanes(std::shared_ptr<Device> device, Segment memory) : device_(std::move(device)), memory_(std::move(memory)) {}
  ~HostLanes();
  HostLanes(const HostLanes&) = delete;
  HostLanes& operator=(const HostLanes&) = delete;

  // Maps whole pages and returns their device address. Call it once per pair of ranks, with the pair's pages. Two ranks
  // of one process may then both map the same pages, because each maps exactly the same range.
  Result<std::byte*> map(std::size_t offset, std::size_t bytes);

 private:
  const std::shared_ptr<Device> device_;
  Segment memory_;
  std::vector<HostMemory> shown_;
};

}  // namespace tutti
