// Virtual memory management of the driver.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/ptx/runtime/driver.h"
#include "tests/ptx/runtime/virtual_space.h"

namespace tutti::cudart {
namespace {

constexpr const char* kFileName = "tutti-ptx-memory-on-";  // Followed by the number of the device.

bool is_whole(std::size_t bytes) { return bytes > 0 && bytes % kGranularity == 0; }

bool is_supported(const CUmemAllocationProp* properties) {
  return properties != nullptr && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(properties->location.id);
}

void* as_pages(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Maps pages without access.
void* block(void* at, std::size_t bytes) {
  const int fixed = at == nullptr ? 0 : MAP_FIXED;
  return ::mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

bool is_reserved(CUdeviceptr address, std::size_t bytes) {
  auto after = space().reservations.upper_bound(address);
  if (after == space().reservations.begin()) return false;
  const auto& [begin, room] = *std::prev(after);
  return address + bytes <= begin + room;
}

// Returns the device of memory that another process exported; -1 for other files.
int device_of(int file) {
  std::array<char, 128> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (::readlink(link.c_str(), name.data(), name.size() - 1) < 0) return -1;
  int device = -1;
  const std::string format = std::string("/memfd:") + kFileName + "%d";
  return std::sscanf(name.data(), format.c_str(), &device) == 1 && is_device(device) ? device : -1;
}

// Content of a CUmemFabricHandle: a descriptor of another process, which the same user can open.
struct FabricHandle {
  int process, file;
};
static_assert(sizeof(FabricHandle) <= sizeof(CUmemFabricHandle));

// Returns a new descriptor of an exported file; -1 if there is none.
int import_file(void* handle, CUmemAllocationHandleType type) {
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return ::fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)), F_DUPFD_CLOEXEC, 0);
  FabricHandle named;
  std::memcpy(&named, handle, sizeof named);
  const std::string path = "/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.file);
  return ::open(path.c_str(), O_RDWR | O_CLOEXEC);
}

cudaError_t grant(const VirtualSpace::View& view, CUdeviceptr address, const CUmemAccessDesc& entry) {
  const int device = entry.location.id, owner = view.memory->device;
  if (entry.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(device)) return cudaErrorInvalidDevice;
  if (device != owner && !linked(device, owner)) return cudaErrorInvalidDevice;
  auto* begin = reinterpret_cast<std::byte*>(address);
  Allocation* allocation = find_allocation(begin);
  const std::uint64_t bit = std::uint64_t{1} << device;
  const bool revoked = entry.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (allocation == nullptr) {
    Allocation made = {.begin = begin, .bytes = view.bytes, .origin = Origin::mapped, .device = owner};
    made.devices = revoked ? 0 : bit;
    return publish(made) ? cudaSuccess : cudaErrorUnknown;
  }
  allocation->devices = revoked ? allocation->devices & ~bit : allocation->devices | bit;
  (void)address_space().set_devices(begin, allocation->devices);
  return cudaSuccess;
}

}  // namespace

VirtualSpace& space() {
  static auto& instance = *new VirtualSpace;
  return instance;
}

PhysicalPtr find_memory(CUmemGenericAllocationHandle handle) {
  const auto found = space().memories.find(handle);
  return found == space().memories.end() ? nullptr : found->second;
}

CUmemGenericAllocationHandle add(PhysicalPtr memory) {
  space().memories[++space().last_handle] = std::move(memory);
  return space().last_handle;
}

CUresult allocation_granularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                CUmemAllocationGranularity_flags) {
  if (bytes == nullptr || !is_supported(properties)) return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult create_memory(CUmemGenericAllocationHandle* made, std::size_t bytes, const CUmemAllocationProp* properties,
                       unsigned long long flags) {
  return driver_without_context([&](Lock&) {
    if (made == nullptr || flags != 0 || !is_whole(bytes) || !is_supported(properties)) return cudaErrorInvalidValue;
    const auto types = static_cast<unsigned>(properties->requestedHandleTypes);
    if (!offers_handles(types)) return cudaErrorNotSupported;
    if ((types & CU_MEM_HANDLE_TYPE_FABRIC) != 0 &&
        (node_options().fabric == Fabric::refused || node_options().fabric == Fabric::refused_in_two))
      return cudaErrorNotPermitted;
    auto memory = std::make_shared<PhysicalMemory>();
    memory->device = properties->location.id;
    memory->bytes = bytes;
    memory->exports = types;
    memory->file = ::memfd_create((kFileName + std::to_string(memory->device)).c_str(), MFD_CLOEXEC);
    if (memory->file < 0 || ::ftruncate(memory->file, static_cast<off_t>(bytes)) != 0) return cudaErrorMemoryAllocation;
    memory->charged = charge(memory->device, bytes);
    if (!memory->charged) return cudaErrorMemoryAllocation;
    *made = add(std::move(memory));
    return cudaSuccess;
  });
}

CUresult release_memory(CUmemGenericAllocationHandle memory) {
  return driver_without_context(
      [&](Lock&) { return space().memories.erase(memory) == 1 ? cudaSuccess : cudaErrorInvalidValue; });
}

CUresult reserve_addresses(CUdeviceptr* made, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
  return driver_without_context([&](Lock&) {
    if (made == nullptr || !is_whole(bytes)) return cudaErrorInvalidValue;
    void* pages = block(nullptr, bytes + kGranularity);
    if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
    const auto first = reinterpret_cast<CUdeviceptr>(pages);
    *made = (first + kGranularity - 1) / kGranularity * kGranularity;
    if (*made > first) ::munmap(pages, *made - first);
    const CUdeviceptr end = *made + bytes, mapped_end = first + bytes + kGranularity;
    if (mapped_end > end) ::munmap(as_pages(end), mapped_end - end);
    space().reservations[*made] = bytes;
    return cudaSuccess;
  });
}

CUresult free_addresses(CUdeviceptr address, std::size_t bytes) {
  return driver_without_context([&](Lock&) {
    const auto found = space().reservations.find(address);
    if (found == space().reservations.end() || found->second != bytes) return cudaErrorInvalidValue;
    const auto view = space().views.lower_bound(address);
    if (view != space().views.end() && view->first < address + bytes) return cudaErrorInvalidValue;  // Still mapped.
    ::munmap(as_pages(address), bytes);
    space().reservations.erase(found);
    return cudaSuccess;
  });
}

CUresult map_memory(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags) {
  return driver_without_context([&](Lock&) {
    const PhysicalPtr memory = find_memory(handle);
    if (memory == nullptr || offset != 0 || flags != 0) return cudaErrorInvalidValue;
    if (!is_whole(bytes) || bytes > memory->bytes || !is_reserved(address, bytes)) return cudaErrorInvalidValue;
    const auto next = space().views.lower_bound(address);
    if (next != space().views.end() && next->first < address + bytes) return cudaErrorAlreadyMapped;
    space().views[address] = {memory, bytes};
    if (memory->table != nullptr) return cudaSuccess;  // Only multimem instructions may access its addresses.
    void* mapped = ::mmap(as_pages(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, 0);
    if (mapped == MAP_FAILED) return space().views.erase(address), cudaErrorMapBufferObjectFailed;
    note_mapping(memory->file, static_cast<std::byte*>(mapped));
    return cudaSuccess;
  });
}

CUresult unmap_memory(CUdeviceptr address, std::size_t bytes) {
  return driver_without_context([&](Lock&) {
    const auto view = space().views.find(address);
    if (view == space().views.end() || view->second.bytes != bytes) return cudaErrorInvalidValue;
    if (Allocation* allocation = find_allocation(as_pages(address))) withdraw(allocation);
    auto* begin = static_cast<std::byte*>(as_pages(address));
    if (view->second.devices != 0) (void)address_space().remove(begin);
    if (view->second.memory->table == nullptr) forget_mapping(view->second.memory->file, begin);
    block(as_pages(address), bytes);
    space().views.erase(view);
    return cudaSuccess;
  });
}

// Waits for kernels of the other devices that get access.
void await_before_access(Lock& lock, CUdeviceptr address, const CUmemAccessDesc* entries, std::size_t count) {
  const auto view = space().views.find(address);
  if (view == space().views.end() || entries == nullptr || node_options().waits == AllocationWaits::none) return;
  const int owner = view->second.memory->device;
  engine().await(lock, "cuMemSetAccess", [&] {
    return std::none_of(entries, entries + count, [&](const CUmemAccessDesc& each) {
      return each.location.id != owner && each.location.id < device_count() && engine().runs_kernel(each.location.id);
    });
  });
}

CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* entries, std::size_t count) {
  return driver_without_context([&](Lock& lock) {
    await_before_access(lock, address, entries, count);
    const auto view = space().views.find(address);
    if (view == space().views.end() || view->second.bytes != bytes || entries == nullptr) return cudaErrorInvalidValue;
    for (std::size_t i = 0; i < count; ++i) {
      const cudaError_t error = view->second.memory->table != nullptr
                                    ? grant_multicast(view->second, address, entries[i])
                                    : grant(view->second, address, entries[i]);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

CUresult export_memory(void* made, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                       unsigned long long flags) {
  return driver_without_context([&](Lock&) {
    const PhysicalPtr memory = find_memory(handle);
    if (made == nullptr || memory == nullptr || flags != 0) return cudaErrorInvalidValue;
    return export_file(*memory, type, made);
  });
}

bool offers_handles(unsigned types) {
  unsigned known = node_options().files == FileExport::unsupported ? 0 : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (node_options().fabric != Fabric::none) known |= CU_MEM_HANDLE_TYPE_FABRIC;
  return (types & ~known) == 0;
}

cudaError_t export_file(const PhysicalMemory& memory, CUmemAllocationHandleType type, void* made) {
  if ((memory.exports & type) == 0) return cudaErrorNotSupported;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    const FabricHandle named = {::getpid(), memory.file};
    std::memset(made, 0, sizeof(CUmemFabricHandle));
    std::memcpy(made, &named, sizeof named);
    return cudaSuccess;
  }
  if (node_options().files == FileExport::refused) return cudaErrorNotPermitted;
  const int file = ::fcntl(memory.file, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return cudaErrorUnknown;
  *static_cast<int*>(made) = file;
  return cudaSuccess;
}

CUresult import_memory(CUmemGenericAllocationHandle* made, void* exported, CUmemAllocationHandleType type) {
  return driver_without_context([&](Lock&) {
    if (made == nullptr || !offers_handles(type) || std::popcount(static_cast<unsigned>(type)) != 1)
      return cudaErrorInvalidValue;
    if (type == CU_MEM_HANDLE_TYPE_FABRIC && node_options().fabric == Fabric::unopened) return cudaErrorNotPermitted;
    auto memory = std::make_shared<PhysicalMemory>();
    memory->file = import_file(exported, type);
    if (PhysicalPtr object = import_multicast(memory->file)) return *made = add(std::move(object)), cudaSuccess;
    struct stat status = {};
    const int device = device_of(memory->file);
    if (device < 0 || ::fstat(memory->file, &status) != 0) return cudaErrorInvalidValue;
    memory->bytes = static_cast<std::size_t>(status.st_size);
    memory->device = device;
    *made = add(std::move(memory));
    return cudaSuccess;
  });
}

CUresult address_range(CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr address) {
  return enter_driver([&](Lock&, DeviceState&) {
    const Allocation* allocation = find_allocation(as_pages(address));
    if (allocation == nullptr) return cudaErrorSymbolNotFound;
    if (begin != nullptr) *begin = reinterpret_cast<CUdeviceptr>(allocation->begin);
    if (bytes != nullptr) *bytes = allocation->bytes;
    return cudaSuccess;
  });
}

// The attribute CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0.
CUresult handle_for_range(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType, unsigned long long) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace tutti::cudart
