// Functions that allocate, register and describe memory.
#include <sys/mman.h>

#include <cstring>

#include "tests/ptx/runtime/memory.h"
#include "tests/ptx/runtime/stream.h"

namespace {

using namespace tutti::cudart;

std::byte* map_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

cudaError_t allocate_host_memory(void** made, std::size_t bytes, Origin origin, const char* what) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    if (made == nullptr) return cudaErrorInvalidValue;
    *made = nullptr;
    const cudaError_t error = forbid_during_capture();
    if (error != cudaSuccess || bytes == 0) return error;
    await_before_mapping(lock, what, device);
    Allocation allocation = {.begin = map_pages(bytes), .bytes = bytes, .origin = origin, .device = device.ordinal};
    allocation.devices = tutti::ptx::kAllDevices;
    if (allocation.begin == nullptr) return cudaErrorMemoryAllocation;
    if (!publish(allocation)) return cudaErrorUnknown;
    *made = allocation.begin;
    return cudaSuccess;
  });
}

// Waits for all work of the device: cudaFree() synchronises implicitly.
cudaError_t await_before_free(Lock& lock, const char* what, DeviceState& device) {
  const cudaError_t error = forbid_during_capture();
  if (error != cudaSuccess) return error;
  await_all(lock, what, ends_of(device));
  await_before_mapping(lock, what, device);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** made, size_t bytes) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    if (made == nullptr) return cudaErrorInvalidValue;
    *made = nullptr;
    const cudaError_t error = forbid_during_capture();
    if (error != cudaSuccess || bytes == 0) return error;
    await_before_mapping(lock, "cudaMalloc", device);
    Allocation allocation = {.begin = allocate_on(device.ordinal, bytes), .bytes = bytes, .device = device.ordinal};
    if (allocation.begin == nullptr) return cudaErrorMemoryAllocation;
    allocation.devices = devices_with_access(device.ordinal);
    allocation.tracks_uninitialised = true;
    if (!publish(allocation)) return cudaErrorUnknown;
    *made = allocation.begin;
    return cudaSuccess;
  });
}

cudaError_t cudaFree(void* memory) {
  return enter_runtime([&](Lock& lock, DeviceState&) {
    if (memory == nullptr) return cudaSuccess;
    const auto is_begin = [memory](const Allocation* allocation) {
      return allocation != nullptr && allocation->begin == memory &&
             (allocation->origin == Origin::device || allocation->origin == Origin::managed);
    };
    const Allocation* allocation = find_allocation(memory);
    if (!is_begin(allocation)) return cudaErrorInvalidValue;
    DeviceState& owner = device_state(allocation->device);
    const cudaError_t error = await_before_free(lock, "cudaFree", owner);
    if (error != cudaSuccess) return error;
    if (!is_begin(find_allocation(memory))) return cudaErrorInvalidValue;  // Freed by another thread meanwhile.
    const Allocation freed = *find_allocation(memory);
    withdraw(find_allocation(memory));
    if (freed.origin == Origin::managed) {
      ::munmap(freed.begin, freed.bytes);
    } else {
      free_on(freed.device, freed);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMallocManaged(void** made, size_t bytes, unsigned) {
  return allocate_host_memory(made, bytes, Origin::managed, "cudaMallocManaged");
}

cudaError_t cudaHostAlloc(void** made, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if ((flags & ~kKnown) != 0) return keep(cudaErrorInvalidValue);
  return allocate_host_memory(made, bytes, Origin::pinned, "cudaHostAlloc");
}

cudaError_t cudaMallocHost(void** made, size_t bytes) { return cudaHostAlloc(made, bytes, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* memory) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    if (memory == nullptr) return cudaSuccess;
    const Allocation* allocation = find_allocation(memory);
    if (allocation == nullptr || allocation->begin != memory || allocation->origin != Origin::pinned)
      return cudaErrorInvalidValue;
    const cudaError_t error = await_before_free(lock, "cudaFreeHost", device);
    if (error != cudaSuccess) return error;
    const std::size_t bytes = find_allocation(memory)->bytes;
    withdraw(find_allocation(memory));
    ::munmap(memory, bytes);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    constexpr unsigned kKnown = cudaHostRegisterPortable | cudaHostRegisterMapped;
    if (memory == nullptr || bytes == 0 || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
    const cudaError_t error = forbid_during_capture();
    if (error != cudaSuccess) return error;
    await_before_mapping(lock, "cudaHostRegister", device);
    Allocation allocation = {.begin = static_cast<std::byte*>(memory), .bytes = bytes, .origin = Origin::registered};
    allocation.device = device.ordinal;
    allocation.devices = tutti::ptx::kAllDevices;
    return publish(allocation) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return enter_runtime([&](Lock& lock, DeviceState& device) {
    const Allocation* allocation = find_allocation(memory);
    if (allocation == nullptr || allocation->begin != memory || allocation->origin != Origin::registered)
      return cudaErrorHostMemoryNotRegistered;
    const cudaError_t error = await_before_free(lock, "cudaHostUnregister", device);
    if (error != cudaSuccess) return error;
    withdraw(find_allocation(memory));
    return cudaSuccess;
  });
}

// Devices see host memory at the address of the host.
cudaError_t cudaHostGetDevicePointer(void** seen, void* memory, unsigned flags) {
  return enter_runtime([&](Lock&, DeviceState&) {
    const Allocation* allocation = find_allocation(memory);
    if (seen == nullptr || flags != 0 || allocation == nullptr || !allocation->on_host()) return cudaErrorInvalidValue;
    *seen = memory;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return enter_runtime([&](Lock&, DeviceState&) {
    if (attributes == nullptr || pointer == nullptr) return cudaErrorInvalidValue;
    *attributes = {};
    auto* memory = const_cast<void*>(pointer);
    const Allocation* allocation = find_allocation(pointer);
    if (allocation == nullptr) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = memory;
      return cudaSuccess;
    }
    attributes->type = !allocation->on_host()                  ? cudaMemoryTypeDevice
                       : allocation->origin == Origin::managed ? cudaMemoryTypeManaged
                                                               : cudaMemoryTypeHost;
    attributes->device = allocation->device;
    attributes->devicePointer = memory;
    attributes->hostPointer = allocation->on_host() ? memory : nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return enter_runtime([&](Lock&, DeviceState& device) {
    if (free != nullptr) *free = free_bytes(device.ordinal);
    if (total != nullptr) *total = total_bytes();
    return cudaSuccess;
  });
}

}  // extern "C"
