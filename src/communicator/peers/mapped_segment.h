// A segment of host memory that a device maps in parts.
#pragma once

#include <memory>
#include <vector>

#include "src/executor/thread_block/device.h"
#include "transports/shm/segment.h"

namespace tutti {

// One thread at a time. The memory is unmapped and freed when no call of the process is in flight (deferred_frees.h).
class MappedSegment {
 public:
  MappedSegment(std::shared_ptr<Device> device, Segment memory)
      : device_(std::move(device)), memory_(std::move(memory)) {}
  ~MappedSegment();
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  // Maps whole pages and returns their device address. Ranks of one process that map the same pages must pass the same
  // range.
  Result<std::byte*> map(std::size_t offset, std::size_t bytes);
  std::byte* data() const { return memory_.data(); }  // Address on the host.

 private:
  const std::shared_ptr<Device> device_;
  Segment memory_;
  std::vector<HostMemory> mapped_;
};

}  // namespace tutti
