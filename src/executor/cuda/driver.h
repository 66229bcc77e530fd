// CUDA driver functions without a runtime counterpart, resolved at run time. The library is not linked with libcuda.
// The driver may be missing or too old for some functions.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "src/base/status.h"

namespace tutti {

// Since CUDA 12.3: CU_MEM_HANDLE_TYPE_FABRIC, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, and the size of a
// CUmemFabricHandle.
inline constexpr auto kFabricHandles = static_cast<CUmemAllocationHandleType>(8);
inline constexpr auto kFabricHandlesSupported = static_cast<CUdevice_attribute>(128);
inline constexpr std::size_t kFabricHandleBytes = 64;

// Newest CUDA version that the driver supports, as 12040 for 12.4; 0 if there is no driver.
int driver_version();
// "12.4"
std::string version_text(int version);

Status no_driver();
Status missing_in_driver(const char* function);
// Converts a driver result to a Status.
Status driver_status(CUresult result, const char* function);

template <typename Function>
class DriverFunction;

template <typename... Parameters>
class DriverFunction<CUresult(Parameters...)> {
 public:
  // `find` returns null for an unknown function.
  DriverFunction(const char* name, void* (*find)(const char* name))
      : name_(name), function_(reinterpret_cast<CUresult (*)(Parameters...)>(find(name))) {}

  bool known() const { return function_ != nullptr; }

  // Calls the function. Fails with its name if it is missing or returns an error.
  Status operator()(Parameters... parameters) const {
    return known() ? driver_status(function_(parameters...), name_) : missing_in_driver(name_);
  }

 private:
  const char* name_;
  CUresult (*function_)(Parameters...);
};

// All driver functions used. Trivially destructible, because threads may outlive static objects.
struct Driver {
  void* (*find)(const char* name);
  void* (*find_of_12_1)(const char* name) = find;  // For functions that version 12.1 has introduced.

  // Contexts and the calling thread.
  DriverFunction<decltype(cuCtxGetCurrent)> get_context{"cuCtxGetCurrent", find};
  DriverFunction<decltype(cuCtxGetDevice)> get_device{"cuCtxGetDevice", find};
  DriverFunction<decltype(cuCtxPushCurrent)> push_context{"cuCtxPushCurrent", find};
  DriverFunction<decltype(cuCtxPopCurrent)> pop_context{"cuCtxPopCurrent", find};
  DriverFunction<decltype(cuDeviceGet)> find_device{"cuDeviceGet", find};
  DriverFunction<decltype(cuDevicePrimaryCtxRetain)> retain_context{"cuDevicePrimaryCtxRetain", find};

  // Virtual memory management (virtual_memory.h), and the begin of an allocation.
  DriverFunction<decltype(cuDeviceGetAttribute)> attribute{"cuDeviceGetAttribute", find};
  DriverFunction<decltype(cuMemGetAllocationGranularity)> granularity{"cuMemGetAllocationGranularity", find};
  DriverFunction<decltype(cuMemCreate)> create_memory{"cuMemCreate", find};
  DriverFunction<decltype(cuMemRelease)> release_memory{"cuMemRelease", find};
  DriverFunction<decltype(cuMemAddressReserve)> reserve_addresses{"cuMemAddressReserve", find};
  DriverFunction<decltype(cuMemAddressFree)> free_addresses{"cuMemAddressFree", find};
  DriverFunction<decltype(cuMemMap)> map{"cuMemMap", find};
  DriverFunction<decltype(cuMemUnmap)> unmap{"cuMemUnmap", find};
  DriverFunction<decltype(cuMemSetAccess)> set_access{"cuMemSetAccess", find};
  DriverFunction<decltype(cuMemExportToShareableHandle)> to_shareable{"cuMemExportToShareableHandle", find};
  DriverFunction<decltype(cuMemImportFromShareableHandle)> from_shareable{"cuMemImportFromShareableHandle", find};
  DriverFunction<decltype(cuMemGetAddressRange)> address_range{"cuMemGetAddressRange", find};
  DriverFunction<decltype(cuMemGetHandleForAddressRange)> range_handle{"cuMemGetHandleForAddressRange", find};

  // Multicast objects (multicast.h).
  DriverFunction<decltype(cuMulticastCreate)> create_multicast{"cuMulticastCreate", find_of_12_1};
  DriverFunction<decltype(cuMulticastAddDevice)> add_to_multicast{"cuMulticastAddDevice", find_of_12_1};
  DriverFunction<decltype(cuMulticastBindMem)> bind{"cuMulticastBindMem", find_of_12_1};
  DriverFunction<decltype(cuMulticastUnbind)> unbind{"cuMulticastUnbind", find_of_12_1};
  DriverFunction<decltype(cuMulticastGetGranularity)> multicast_granularity{"cuMulticastGetGranularity", find_of_12_1};

  // Stream memory operations: write and wait for a word.
  DriverFunction<decltype(cuStreamWriteValue32)> write_word{"cuStreamWriteValue32", find};
  DriverFunction<decltype(cuStreamWaitValue32)> await_word{"cuStreamWaitValue32", find};

  bool pushes_contexts() const {
    return get_context.known() && get_device.known() && push_context.known() && pop_context.known() &&
           find_device.known() && retain_context.known();
  }
  bool has_virtual_memory() const {
    return attribute.known() && granularity.known() && create_memory.known() && release_memory.known() &&
           reserve_addresses.known() && free_addresses.known() && map.known() && unmap.known() && set_access.known() &&
           to_shareable.known() && from_shareable.known();
  }
  bool has_multicast() const {
    return has_virtual_memory() && create_multicast.known() && add_to_multicast.known() && bind.known() &&
           unbind.known() && multicast_granularity.known();
  }
};

// The process-wide instance, resolved once.
const Driver& driver();

}  // namespace tutti
