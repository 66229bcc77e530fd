// Device memory by the driver's virtual memory management. Shared memory has a file descriptor, through which another
// process opens it; unlike CUDA IPC handles, that needs no common PID namespace. Multicast requires shared memory.
// Private memory is accessed by one device only.
#pragma once

#include <cstddef>
#include <utility>

#include "src/base/status.h"
#include "transports/shm/segment.h"

namespace tutti {

// Frees the memory when destroyed. Bound to one device.
class VirtualMemory {
 public:
  // Whether the device supports create_private(). False if the driver is too old.
  static bool offered(int ordinal);
  // Whether the device supports create(), too.
  static bool offers_files(int ordinal);
  // Allocates at least `bytes` on the device, which must be current. The memory is not zeroed.
  static Result<VirtualMemory> create(int ordinal, std::size_t bytes);
  // Like create(), without a file, and without access by other devices. Unlike cudaMalloc(), it does not wait for
  // kernels of devices that can access memory of this device.
  static Result<VirtualMemory> create_private(int ordinal, std::size_t bytes);
  // Maps memory of another process from its file(), for this device. `bytes` must be the size passed to create().
  static Result<VirtualMemory> open(int ordinal, const File& file, std::size_t bytes);

  VirtualMemory() = default;
  VirtualMemory(VirtualMemory&& other) noexcept { *this = std::move(other); }
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;
  ~VirtualMemory() { release(); }

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  Result<File> file() const;
  unsigned long long handle() const { return handle_; }
  std::size_t bytes() const { return bytes_; }  // Rounded up.

 private:
  // `handle_type`: a CUmemAllocationHandleType. Only the device has access.
  static Result<VirtualMemory> make(int ordinal, std::size_t bytes, int handle_type);
  Status map(int ordinal);  // Only this device gets access.
  Status allow(int ordinal);
  void allow_other_devices();  // Where possible, for all devices of this process.
  void release();

  unsigned long long handle_ = 0;  // Allocation handle; 0: none.
  unsigned long long address_ = 0;
  std::size_t bytes_ = 0;  // Rounded up to the allocation granularity.
  bool mapped_ = false;
};

}  // namespace tutti
