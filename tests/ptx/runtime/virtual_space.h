// Handles and mappings of virtual memory management, of memory and of multicast objects. All functions require the
// runtime's lock unless stated otherwise.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>

#include "tests/ptx/runtime/memory.h"

namespace tutti::cudart {

inline constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct MulticastTable;

// Memory of a device, or a multicast object, in an anonymous file.
struct PhysicalMemory {
  int file = -1;
  std::size_t bytes = 0;
  int device = 0;                   // -1: a multicast object.
  MulticastTable* table = nullptr;  // The mapped file of a multicast object.
  bool charged = false;             // Created by this process: counts as memory of the device.
  unsigned exports = 0;             // CUmemAllocationHandleType bits with which it was created.

  PhysicalMemory() = default;
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  ~PhysicalMemory();
};
using PhysicalPtr = std::shared_ptr<PhysicalMemory>;

// Handles, and mappings by address. A mapping keeps the memory after its handle was released.
struct VirtualSpace {
  std::map<CUmemGenericAllocationHandle, PhysicalPtr> memories;
  CUmemGenericAllocationHandle last_handle = 0;
  std::map<CUdeviceptr, std::size_t> reservations;
  struct View {
    PhysicalPtr memory;
    std::size_t bytes = 0;
    std::uint64_t devices = 0;  // Devices that can access a multicast object.
  };
  std::map<CUdeviceptr, View> views;
};
VirtualSpace& space();
PhysicalPtr find_memory(CUmemGenericAllocationHandle handle);  // Null for an unknown handle.
CUmemGenericAllocationHandle add(PhysicalPtr memory);

// Where this process has mapped the memory of a file, for multicast objects; see MemoryRange::replicas. These need no
// lock.
void note_mapping(int file, std::byte* begin);
void forget_mapping(int file, const std::byte* begin);

// Exports the file of memory or of a multicast object. `made`: see cuMemExportToShareableHandle.
cudaError_t export_file(const PhysicalMemory& memory, CUmemAllocationHandleType type, void* made);
// True if memory can be created with these kinds of handles.
bool offers_handles(unsigned types);

// Opens the file of a multicast object of this or another process; null for other files.
PhysicalPtr import_multicast(int file);
// Grants or revokes access of a device to a mapped multicast object.
cudaError_t grant_multicast(VirtualSpace::View& view, CUdeviceptr address, const CUmemAccessDesc& entry);

}  // namespace tutti::cudart
