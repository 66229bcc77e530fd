// Memory for thread blocks of a device: host memory that the device can access, and device memory.
#pragma once

#include <map>
#include <memory_resource>
#include <vector>

#include "src/executor/thread_block/device.h"

namespace tutti::test {

// Host memory that thread blocks of a device access at the same addresses. Not thread-safe.
class DeviceReach final : public std::pmr::memory_resource {
 public:
  explicit DeviceReach(Device& device) : device_(device) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  Device& device_;
  std::map<void*, HostMemory> taken_;
};

// Zeroed device memory for lanes, allocated consecutively. Starts again at the begin once all allocations are freed; no
// thread block may use them then. Not thread-safe.
class DeviceArena final : public std::pmr::memory_resource {
 public:
  explicit DeviceArena(Device& device);
  ~DeviceArena() override { device_.free(memory_); }
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void*, std::size_t, std::size_t) override { --taken_; }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  Device& device_;
  std::byte* memory_;
  std::size_t used_ = 0;
  std::size_t taken_ = 0;  // Number of live allocations.
  std::vector<std::byte> zeroes_;
};

}  // namespace tutti::test
