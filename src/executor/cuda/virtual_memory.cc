#include "src/executor/cuda/virtual_memory.h"

#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "src/base/pages.h"
#include "src/executor/cuda/driver.h"

namespace tutti {
namespace {

CUmemAllocationProp properties(int ordinal, CUmemAllocationHandleType type) {
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = type;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  return wanted;
}

bool has(int ordinal, CUdevice_attribute attribute) {
  int answer = 0;
  return driver().attribute(&answer, attribute, ordinal).ok() && answer != 0;
}

CUmemAllocationHandleType handle_type_of(ShareKind kind) {
  return kind == ShareKind::fabric ? kFabricHandles : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

Result<std::size_t> rounded(const CUmemAllocationProp& wanted, std::size_t bytes) {
  std::size_t unit = 0;
  TUTTI_CHECK_OK(driver().granularity(&unit, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return round_up(bytes, unit);
}

}  // namespace

bool VirtualMemory::offered(int ordinal) {
  return driver().has_virtual_memory() && has(ordinal, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

bool VirtualMemory::offers_files(int ordinal) {
  return offered(ordinal) && has(ordinal, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
}

bool VirtualMemory::offers_fabric_handles(int ordinal) {
  return offered(ordinal) && has(ordinal, kFabricHandlesSupported);
}

Result<VirtualMemory> VirtualMemory::create(int ordinal, std::size_t bytes, ShareKind kind) {
  VirtualMemory memory = TUTTI_TRY(make(ordinal, bytes, handle_type_of(kind)));
  memory.kind_ = kind;
  memory.allow_other_devices();
  return memory;
}

Result<VirtualMemory> VirtualMemory::create_private(int ordinal, std::size_t bytes) {
  return make(ordinal, bytes, CU_MEM_HANDLE_TYPE_NONE);
}

Result<VirtualMemory> VirtualMemory::make(int ordinal, std::size_t bytes, int handle_type) {
  const CUmemAllocationProp wanted = properties(ordinal, static_cast<CUmemAllocationHandleType>(handle_type));
  VirtualMemory memory;
  memory.bytes_ = TUTTI_TRY(rounded(wanted, bytes));
  TUTTI_CHECK_OK(driver()
                     .create_memory(&memory.handle_, memory.bytes_, &wanted, 0)
                     .during("taking " + std::to_string(memory.bytes_) + " bytes"));
  TUTTI_CHECK_OK(memory.map(ordinal));
  return memory;
}

Result<VirtualMemory> VirtualMemory::open(int ordinal, const DeviceShare& share, const File& file) {
  VirtualMemory memory;
  memory.bytes_ = TUTTI_TRY(rounded(properties(ordinal, handle_type_of(share.kind)), share.allocated_bytes));
  memory.handle_ = TUTTI_TRY(import_share(share, file));
  TUTTI_CHECK_OK(memory.map(ordinal));
  memory.allow_other_devices();
  return memory;
}

Status VirtualMemory::map(int ordinal) {
  TUTTI_CHECK_OK(driver().reserve_addresses(&address_, bytes_, 0, 0, 0));
  TUTTI_CHECK_OK(driver().map(address_, bytes_, 0, handle_, 0));
  mapped_ = true;
  return allow(ordinal);
}

Status VirtualMemory::allow(int ordinal) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver().set_access(address_, bytes_, &access, 1);
}

// Other devices use the memory only after Device::enable_peer_access().
void VirtualMemory::allow_other_devices() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) cudaGetLastError();
  for (int ordinal = 0; ordinal < devices; ++ordinal) (void)allow(ordinal);
}

Result<DeviceShare> VirtualMemory::share(std::size_t bytes, File& file) const {
  DeviceShare share = TUTTI_TRY(export_share(handle_, kind_, file));
  share.allocated_bytes = bytes;
  return share;
}

Result<DeviceShare> export_share(unsigned long long handle, ShareKind kind, File& file) {
  DeviceShare share = {.kind = kind};
  if (kind == ShareKind::fabric) {
    static_assert(sizeof share.handle == kFabricHandleBytes);
    TUTTI_CHECK_OK(driver().to_shareable(share.handle.data(), handle, kFabricHandles, 0));
    return share;
  }
  int descriptor = -1;
  TUTTI_CHECK_OK(driver().to_shareable(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  file = File(descriptor);
  return share;
}

Result<unsigned long long> import_share(const DeviceShare& share, const File& file) {
  DeviceHandle named = share.handle;
  void* const by_file = reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
  CUmemGenericAllocationHandle handle = 0;
  TUTTI_CHECK_OK(
      driver().from_shareable(&handle, share.by_file() ? by_file : named.data(), handle_type_of(share.kind)));
  return handle;
}

VirtualMemory& VirtualMemory::operator=(VirtualMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  handle_ = std::exchange(other.handle_, 0);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  mapped_ = std::exchange(other.mapped_, false);
  kind_ = other.kind_;
  return *this;
}

void VirtualMemory::release() {
  if (mapped_) (void)driver().unmap(address_, bytes_);
  if (address_ != 0) (void)driver().free_addresses(address_, bytes_);
  if (handle_ != 0) (void)driver().release_memory(handle_);
}

}  // namespace tutti
