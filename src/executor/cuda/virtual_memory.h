// Memory of a GPU that another process opens by a file descriptor: what the driver calls virtual memory management.
// Unlike handles of CUDA IPC it needs no common namespace of processes, and it is what multicast will build on.
#pragma once

#include <cstddef>
#include <utility>

#include "src/base/status.h"
#include "transports/shm/segment.h"

namespace tutti {

// Given back when it ends. Not to be moved to another device.
class VirtualMemory {
 public:
  // Whether the device has such memory. False as well where the driver is too old.
  static bool offered(int ordinal);
  // On the device, which is current: at least so many bytes, which are not zeroed.
  static Result<VirtualMemory> create(int ordinal, std::size_t bytes);
  // The memory behind another process's file(), for this device. `bytes`: what it was created with.
  static Result<VirtualMemory> open(int ordinal, const File& file, std::size_t bytes);

  VirtualMemory() = default;
  VirtualMemory(VirtualMemory&& other) noexcept { *this = std::move(other); }
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;
  ~VirtualMemory() { release(); }

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  Result<File> file() const;

 private:
  Status map(int ordinal);
  void release();

  unsigned long long handle_ = 0;  // Of the memory; 0: none.
  unsigned long long address_ = 0;
  std::size_t bytes_ = 0;  // A multiple of what the device maps at once.
  bool mapped_ = false;
};

}  // namespace tutti
