// Cuts device memory from few allocations: direct allocations are slow and large, and freeing them waits for the
// device.
#pragma once

#include <cstddef>
#include <vector>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Not thread-safe. Memory is freed when the object is destroyed.
class Suballocator {
 public:
  using Allocate = Result<std::byte*> (Device::*)(std::size_t bytes);
  // Does not allocate memory. The device must outlive the object.
  Suballocator(Device& device, Allocate allocate) : device_(device), allocate_(allocate) {}
  ~Suballocator();
  Suballocator(const Suballocator&) = delete;
  Suballocator& operator=(const Suballocator&) = delete;

  // Allocates device memory for later calls of cut().
  Status reserve(std::size_t bytes);
  // Returns zeroed memory, aligned to kUnitBytes.
  Result<std::byte*> cut(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }  // Bytes allocated from the device.

  static constexpr std::size_t kUnitBytes = 256;

 private:
  Device& device_;
  const Allocate allocate_;
  std::vector<std::byte*> allocations_;  // The last one has `left_` bytes from `free_` on.
  std::byte* free_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
