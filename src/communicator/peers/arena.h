// Suballocator of device memory. Direct allocations are slow and large, and freeing them waits for the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/executor/thread_block/device.h"

namespace tutti {

// Not thread-safe. All memory is freed with the arena, when no thread block uses it any more.
class DeviceArena {
 public:
  explicit DeviceArena(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  std::size_t bytes() const { return bytes_; }  // Bytes allocated from the device.

  // Returns zeroed memory, aligned to 256 bytes.
  Result<std::byte*> allocate(std::size_t bytes);
  // Allocates device memory for later calls of allocate().
  Status reserve(std::size_t bytes);
  // Like allocate(), but may return retired memory, with its old content.
  Result<std::byte*> allocate_uncleared(std::size_t bytes);
  // Makes memory available to allocate_uncleared() once call `number` is known to be done; see done_before().
  void retire(std::byte* memory, std::size_t bytes, std::uint64_t number);
  // Reports that all calls before `number` are done.
  void done_before(std::uint64_t number);

 private:
  struct Retired {
    std::byte* memory;
    std::uint64_t number;
  };
  static constexpr std::size_t kClasses = 14;  // Size classes of retired chunks: 256 bytes to 2 MiB.

  std::shared_ptr<Device> device_;
  std::vector<std::byte*> chunks_;
  std::byte* free_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t done_before_ = 0;
  std::array<std::vector<Retired>, kClasses> retired_;
};

}  // namespace tutti
