// Memory that devices can access: allocations, registered host memory, and mappings of other processes' memory. Device
// memory lies in anonymous files, so that other processes can map it. All functions require the runtime's lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "tests/ptx/machine/memory.h"
#include "tests/ptx/runtime/state.h"

namespace tutti::cudart {

enum class Origin : std::uint8_t {
  device,      // cudaMalloc
  pinned,      // cudaHostAlloc
  registered,  // cudaHostRegister
  managed,     // cudaMallocManaged
  mapped,      // cuMemMap
  opened,      // cudaIpcOpenMemHandle
};

struct Allocation {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  Origin origin = Origin::device;
  int device = 0;
  std::uint64_t devices = 0;  // Bit d: device d can access it.
  bool tracks_uninitialised = false;
  std::size_t opened = 0;      // Number of cudaIpcOpenMemHandle() calls.
  std::byte* pages = nullptr;  // Mapped pages that contain an opened allocation.
  std::size_t page_bytes = 0;
  std::string handle = {};  // For an opened allocation.

  bool on_host() const { return origin == Origin::pinned || origin == Origin::registered || origin == Origin::managed; }
};

// The space that kernels see. Thread-safe.
ptx::AddressSpace& address_space();

// Returns the allocation that contains the address, or null.
Allocation* find_allocation(const void* address);
// Returns the begin of the first allocation after the address, or null.
const std::byte* next_allocation(const std::byte* address);
// Returns the mapping of another process's memory by its IPC handle, or null.
Allocation* find_opened(const std::string& handle);
// Makes an allocation known. Returns false if the range overlaps another one.
bool publish(const Allocation& allocation);
void withdraw(Allocation* allocation);
// Updates which devices can access the memory of `owner`, after peer access has changed.
void update_peer_access(int owner);
// Bits of the devices that can access memory from cudaMalloc on this device.
std::uint64_t devices_with_access(int owner);

// Memory of a device: part of one anonymous file. allocate_on() returns null if the device has no room.
std::byte* allocate_on(int device, std::size_t bytes);
void free_on(int device, const Allocation& allocation);
// Counts memory of the device that lies in a file of its own, until refund(). Returns false if the device has no room.
bool charge(int device, std::size_t bytes);
void refund(int device, std::size_t bytes);
struct FilePart {
  int file = -1;
  off_t offset = 0;
};
FilePart file_part(const Allocation& allocation);

std::size_t total_bytes();
std::size_t free_bytes(int device);

// Waits for kernels that would delay a new mapping of memory into the address space of `device`, by NodeOptions::waits.
// Source: NVIDIA/nccl issue 787; CUDA programming guide, "Implicit synchronization".
void await_before_mapping(Lock& lock, const char* what, const DeviceState& device);

}  // namespace tutti::cudart
