// Device memory by the driver's virtual memory management. Other processes open shared memory through a file
// descriptor, which unlike CUDA IPC handles needs no common PID namespace, or through a fabric handle, which other
// hosts of an NVLink domain can open, too. Multicast requires shared memory. Private memory is accessed by one device
// only.
#pragma once

#include <cstddef>
#include <utility>

#include "src/base/status.h"
#include "src/executor/thread_block/device.h"
#include "transports/shm/segment.h"

namespace tutti {

// Frees the memory when destroyed. Bound to one device.
class VirtualMemory {
 public:
  // Whether the device supports create_private(). False if the driver is too old.
  static bool offered(int ordinal);
  // Whether the device supports create(), too.
  static bool offers_files(int ordinal);
  // Whether the device supports create() with fabric handles, too. Hosts that are not part of an NVLink domain, or do
  // not run NVIDIA's IMEX service, refuse to create such memory nevertheless.
  static bool offers_fabric_handles(int ordinal);
  // Allocates at least `bytes` on the device, which must be current. The memory is not zeroed. `kind`: file or fabric.
  static Result<VirtualMemory> create(int ordinal, std::size_t bytes, ShareKind kind);
  // Like create(), without a file, and without access by other devices. Unlike cudaMalloc(), it does not wait for
  // kernels of devices that can access memory of this device.
  static Result<VirtualMemory> create_private(int ordinal, std::size_t bytes);
  // Maps memory of another process for this device. `file`: ignored unless share.by_file().
  static Result<VirtualMemory> open(int ordinal, const DeviceShare& share, const File& file);

  VirtualMemory() = default;
  VirtualMemory(VirtualMemory&& other) noexcept { *this = std::move(other); }
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;
  ~VirtualMemory() { release(); }

  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  ShareKind kind() const { return kind_; }
  // Returns how other processes open the memory, which is `bytes` long, as passed to create().
  Result<DeviceShare> share(std::size_t bytes, File& file) const;
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
  ShareKind kind_ = ShareKind::handle;
};

// Exports a handle of memory or of a multicast object. `kind`: file or fabric. Sets `file`, or the handle of the share.
Result<DeviceShare> export_share(unsigned long long handle, ShareKind kind, File& file);
// Returns the handle of an exported one. Fails if the share was not exported by this function.
Result<unsigned long long> import_share(const DeviceShare& share, const File& file);

}  // namespace tutti
