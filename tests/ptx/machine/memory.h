// Memory of the process that kernels may access. Kernels use real addresses of the process; an access outside of the
// registered ranges is a fault. Shared, local and parameter memory belong to the machine and are not registered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti::ptx {

enum class MemoryKind : std::uint8_t {
  device,   // Memory of a device of this process. Other processes may map it, too.
  host,     // Pinned or registered host memory.
  foreign,  // Memory that another process allocated.
};

inline constexpr std::uint64_t kAllDevices = ~std::uint64_t{0};

struct MemoryRange {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  int device = 0;                     // Owner if `kind` is device.
  std::uint64_t devices = 0;          // Bit d: kernels of device d may access the range.
  bool tracks_uninitialised = false;  // A kernel faults if it reads bytes that were not written; see mark_written().
  std::string name;                   // For fault messages: the call that allocated it.
  // Multicast addresses, for multimem instructions only: returns where the memory of each device begins. Called by the
  // machine's thread, when a kernel accesses the range.
  std::function<std::vector<std::byte*>()> replicas = {};
};

// Thread-safe. Kernels see a change at the latest when add(), remove() or set_devices() has returned, unless the change
// concerns memory that a running kernel accesses at the same time.
class AddressSpace {
 public:
  // Fails if the range is empty or overlaps another one. Forgets what was known about the addresses.
  Status add(const MemoryRange& range);

  // Kernels that access the range afterwards fault with "use after free". Fails unless a range begins at `begin`.
  Status remove(const std::byte* begin);

  // Peer access: sets which devices may access the range that begins at `begin`.
  Status set_devices(const std::byte* begin, std::uint64_t devices);

  // The host, a copy engine or another process wrote these bytes. Needed only for ranges that track uninitialised
  // bytes.
  void mark_written(const std::byte* begin, std::size_t bytes);

  std::optional<MemoryRange> find(const std::byte* address) const;        // The range that contains the address.
  std::optional<MemoryRange> find_freed(const std::byte* address) const;  // The latest one that was removed.

  // The rest is for the machine.

  // Changes since the last call. The machine forgets accesses to these addresses.
  struct Change {
    enum class Kind : std::uint8_t { added, removed, written } kind = Kind::added;
    std::uintptr_t begin = 0, end = 0;
    bool tracks_uninitialised = false;
  };
  std::vector<Change> take_changes();

  std::vector<MemoryRange> ranges() const;  // Sorted.

  // Changes whenever a range is added, removed or changed.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  void note(const Change& change);

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, MemoryRange> ranges_;  // By last address + 1.
  std::map<std::uintptr_t, MemoryRange> freed_;   // The same.
  std::vector<Change> changes_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace tutti::ptx
