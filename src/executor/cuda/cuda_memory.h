// Device memory: allocations, and a cache of freed memory.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>

#include "src/executor/cuda/virtual_memory.h"
#include "src/executor/thread_block/device.h"
#include "src/executor/thread_block/free_list.h"

namespace tutti {

// Thread-safe. The device must be current. Memory is not cleared.
class CudaMemory {
 public:
  explicit CudaMemory(int ordinal);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  Result<std::byte*> take(std::size_t bytes);
  // Like take(), for memory that no other device accesses; see Device::allocate_private(). Plain if the device does not
  // support such memory, or if the process uses no other device.
  Result<std::byte*> take_private(std::size_t bytes);
  // Like take(), for memory that other processes can open through `file`. If the device or the system does not support
  // this, `file` stays empty and the memory is plain.
  Result<std::byte*> take_shared(std::size_t bytes, File& file);
  // Like take(), for memory that processes on other hosts open, too; see Device::allocate_for_domain().
  Result<std::byte*> take_for_domain(std::size_t bytes);
  // Implements Device::share_of() for memory of take_shared() with a file, and of take_for_domain(). Returns an empty
  // share by a handle for other memory. Any device may be current.
  Result<DeviceShare> share_of(std::byte* memory, std::size_t bytes, File& file);
  // Calls use(allocation, offset) for an address in memory of take_shared() or take_for_domain(). Fails if the memory
  // is plain, or not of this interface.
  template <typename Use>
  auto with_shared(std::byte* memory, Use use) -> decltype(use(std::declval<const VirtualMemory&>(), std::size_t{0})) {
    const std::lock_guard lock(mutex_);
    const auto behind = taken_.upper_bound(memory);
    if (behind != taken_.begin()) {
      const auto& [begin, taken] = *std::prev(behind);
      const auto offset = static_cast<std::size_t>(memory - begin);
      if (taken.shared.data() != nullptr && offset < taken.bytes) return use(taken.shared, offset);
    }
    return unsupported("the memory has no file");
  }
  void keep(std::byte* memory);
  // Withdraws memory that other processes may still have mapped. Memory of the driver's virtual memory management is
  // released by free_kept(); other processes keep their mappings. Plain memory is never reused.
  void set_aside(std::byte* memory);
  void free(std::byte* memory);
  void free_kept();

 private:
  struct Taken {
    std::size_t bytes = 0;
    VirtualMemory shared, of_device;  // Empty for plain allocations.
  };
  static FreeList::Kind kind_of(const Taken& taken) {
    return {taken.bytes, taken.shared.data() != nullptr, taken.of_device.data() != nullptr,
            taken.shared.kind() == ShareKind::fabric};
  }
  Result<std::byte*> take_exported(std::size_t bytes, File& file);
  std::byte* take_free(const FreeList::Kind& kind);
  std::byte* add_shared(std::size_t bytes, VirtualMemory made);

  const int ordinal_;
  std::mutex mutex_;
  std::map<std::byte*, Taken> taken_;
  FreeList kept_;
};

}  // namespace tutti
