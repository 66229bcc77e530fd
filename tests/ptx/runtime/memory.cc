#include "tests/ptx/runtime/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "tests/ptx/runtime/pageable.h"

namespace tutti::cudart {
namespace {

constexpr std::size_t kUnit = 512;  // Alignment of allocations, and at least as many bytes lie between them.

// Memory of a device. Freed ranges are reused as late as possible, so that accesses to freed memory are detected.
class DeviceMemoryFile {
 public:
  explicit DeviceMemoryFile(int device)
      : file_(::memfd_create(("tutti-ptx-device-" + std::to_string(device)).c_str(), MFD_CLOEXEC)) {
    void* mapped = MAP_FAILED;
    if (file_ >= 0 && ::ftruncate(file_, total_bytes()) == 0)
      mapped = ::mmap(nullptr, total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (mapped != MAP_FAILED) base_ = static_cast<std::byte*>(mapped);
  }

  std::byte* take(std::size_t bytes) {
    if (base_ == nullptr || bytes > total_bytes()) return nullptr;
    const std::size_t room = (bytes + kUnit - 1) / kUnit * kUnit + kUnit;
    if (room > total_bytes() - taken_bytes_) return nullptr;
    std::size_t found = gap(next_, total_bytes(), room);
    if (found == total_bytes()) found = gap(0, total_bytes(), room);
    if (found == total_bytes()) return nullptr;
    taken_[found] = room;
    taken_bytes_ += room;
    next_ = found + room;
    return base_ + found;
  }

  void give_back(std::byte* memory) {
    const auto at = static_cast<std::size_t>(memory - base_);
    const auto found = taken_.find(at);
    const std::size_t page = 4096, first = (at + page - 1) / page * page, last = (at + found->second) / page * page;
    if (first < last) {
      ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                  static_cast<off_t>(last - first));
    }
    taken_bytes_ -= found->second;
    taken_.erase(found);
  }

  // Counts memory in other files.
  bool charge(std::size_t bytes) {
    if (bytes > total_bytes() - taken_bytes_) return false;
    taken_bytes_ += bytes;
    return true;
  }
  void refund(std::size_t bytes) { taken_bytes_ -= bytes; }

  FilePart part(const std::byte* memory) const { return {file_, static_cast<off_t>(memory - base_)}; }
  std::size_t taken_bytes() const { return taken_bytes_; }

 private:
  // Returns the offset of a free range between `from` and `until`, or total_bytes().
  std::size_t gap(std::size_t from, std::size_t until, std::size_t room) const {
    auto after = taken_.upper_bound(from);
    if (after != taken_.begin()) {
      const auto before = std::prev(after);
      from = std::max(from, before->first + before->second);
    }
    for (; from + room <= until; ++after) {
      if (after == taken_.end() || from + room <= after->first) return from;
      from = after->first + after->second;
    }
    return total_bytes();
  }

  int file_;
  std::byte* base_ = nullptr;
  std::map<std::size_t, std::size_t> taken_;  // Offset and size of each taken range.
  std::size_t taken_bytes_ = 0;
  std::size_t next_ = 0;
};

DeviceMemoryFile& memory_of(int device) {
  static auto& all = *new std::map<int, DeviceMemoryFile>;
  return all.try_emplace(device, device).first->second;
}

// Allocations by the address after their last byte.
std::map<const std::byte*, Allocation>& allocations() {
  static auto& all = *new std::map<const std::byte*, Allocation>;
  return all;
}

ptx::MemoryKind kind_of(const Allocation& allocation) {
  if (allocation.on_host()) return ptx::MemoryKind::host;
  return allocation.origin == Origin::opened ? ptx::MemoryKind::foreign : ptx::MemoryKind::device;
}

const char* call_of(Origin origin) {
  switch (origin) {
    case Origin::device: return "cudaMalloc";
    case Origin::pinned: return "cudaHostAlloc";
    case Origin::registered: return "cudaHostRegister";
    case Origin::managed: return "cudaMallocManaged";
    case Origin::mapped: return "cuMemMap";
    case Origin::opened: return "cudaIpcOpenMemHandle";
  }
  return "?";
}

}  // namespace

ptx::AddressSpace& address_space() {
  static auto& space = *new ptx::AddressSpace;
  return space;
}

Allocation* find_allocation(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const auto found = allocations().upper_bound(at);
  return found == allocations().end() || found->second.begin > at ? nullptr : &found->second;
}

const std::byte* next_allocation(const std::byte* address) {
  const auto found = allocations().upper_bound(address);
  return found == allocations().end() ? nullptr : found->second.begin;
}

Allocation* find_opened(const std::string& handle) {
  for (auto& [end, allocation] : allocations()) {
    if (allocation.origin == Origin::opened && allocation.handle == handle) return &allocation;
  }
  return nullptr;
}

bool publish(const Allocation& allocation) {
  hide_pageable_memory(allocation.begin, allocation.bytes);
  const ptx::MemoryRange range = {.begin = allocation.begin,
                                  .bytes = allocation.bytes,
                                  .kind = kind_of(allocation),
                                  .device = allocation.device,
                                  .devices = allocation.devices,
                                  .tracks_uninitialised = allocation.tracks_uninitialised,
                                  .name = call_of(allocation.origin)};
  if (!address_space().add(range).ok()) return false;
  allocations()[allocation.begin + allocation.bytes] = allocation;
  return true;
}

void withdraw(Allocation* allocation) {
  (void)address_space().remove(allocation->begin);
  allocations().erase(allocation->begin + allocation->bytes);
}

std::uint64_t devices_with_access(int owner) {
  std::uint64_t devices = std::uint64_t{1} << owner;
  for (int i = 0; i < device_count(); ++i) {
    if (device_state(i).reaches.count(owner) != 0) devices |= std::uint64_t{1} << i;
  }
  return devices;
}

void update_peer_access(int owner) {
  for (auto& [end, allocation] : allocations()) {
    if (allocation.origin != Origin::device || allocation.device != owner) continue;
    allocation.devices = devices_with_access(owner);
    (void)address_space().set_devices(allocation.begin, allocation.devices);
  }
}

std::byte* allocate_on(int device, std::size_t bytes) { return memory_of(device).take(bytes); }
void free_on(int device, const Allocation& allocation) { memory_of(device).give_back(allocation.begin); }
bool charge(int device, std::size_t bytes) { return memory_of(device).charge(bytes); }
void refund(int device, std::size_t bytes) { memory_of(device).refund(bytes); }
FilePart file_part(const Allocation& allocation) { return memory_of(allocation.device).part(allocation.begin); }
std::size_t total_bytes() { return static_cast<std::size_t>(node_options().memory_mib) << 20; }
std::size_t free_bytes(int device) { return total_bytes() - memory_of(device).taken_bytes(); }

void await_before_mapping(Lock& lock, const char* what, const DeviceState& device) {
  const AllocationWaits waits = node_options().waits;
  const auto is_quiet = [&] {
    for (int i = 0; i < device_count(); ++i) {
      const bool peer = waits != AllocationWaits::none && device_state(i).reaches.count(device.ordinal) != 0;
      const bool own = waits == AllocationWaits::all && i == device.ordinal;
      if ((peer || own) && engine().runs_kernel(i)) return false;
    }
    return true;
  };
  engine().await(lock, what, is_quiet);
}

}  // namespace tutti::cudart
