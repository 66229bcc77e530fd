// The functions of the driver that cudaGetDriverEntryPoint() finds.
#include <cstring>
#include <map>
#include <string_view>

#include "tests/ptx/runtime/driver.h"
#include "tests/ptx/runtime/state.h"

namespace tutti::cudart {
namespace {

CUresult get_current(CUcontext* context) {
  return driver_without_context([&](Lock&) {
    if (context == nullptr) return cudaErrorInvalidValue;
    const auto& stack = this_thread().contexts;
    *context = stack.empty() || stack.back() == nullptr ? nullptr : handle_of(*stack.back());
    return cudaSuccess;
  });
}

CUresult get_device(CUdevice* device) {
  return driver_without_context([&](Lock&) {
    const auto& stack = this_thread().contexts;
    if (stack.empty() || stack.back() == nullptr) return cudaErrorDeviceUninitialized;
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = stack.back()->ordinal;
    return cudaSuccess;
  });
}

CUresult push_current(CUcontext context) {
  return driver_without_context([&](Lock&) {
    DeviceState* device = context_of(context);
    if (device == nullptr || !device->active) return cudaErrorDeviceUninitialized;
    this_thread().contexts.push_back(device);
    return cudaSuccess;
  });
}

CUresult pop_current(CUcontext* context) {
  return driver_without_context([&](Lock&) {
    auto& stack = this_thread().contexts;
    if (stack.empty() || stack.back() == nullptr) return cudaErrorDeviceUninitialized;
    if (context != nullptr) *context = handle_of(*stack.back());
    stack.pop_back();
    return cudaSuccess;
  });
}

CUresult get_ordinal(CUdevice* device, int ordinal) {
  return driver_without_context([&](Lock&) {
    if (!is_device(ordinal)) return cudaErrorInvalidDevice;
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = ordinal;
    return cudaSuccess;
  });
}

CUresult retain_primary(CUcontext* context, CUdevice ordinal) {
  return driver_without_context([&](Lock&) {
    if (!is_device(ordinal)) return cudaErrorInvalidDevice;
    if (context == nullptr) return cudaErrorInvalidValue;
    device_state(ordinal).active = true;
    *context = handle_of(device_state(ordinal));
    return cudaSuccess;
  });
}

CUresult text_of(CUresult error, const char** text) {
  *text = error_text(static_cast<cudaError_t>(error));
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult name_of(CUresult error, const char** name) {
  *name = driver_name(static_cast<cudaError_t>(error));
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

template <typename Function>
void* as_entry(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::map<std::string_view, void*>& entries() {
  static const auto& all = *new std::map<std::string_view, void*>{
      {"cuCtxGetCurrent", as_entry<decltype(cuCtxGetCurrent)>(get_current)},
      {"cuCtxGetDevice", as_entry<CUresult(CUdevice*)>(get_device)},
      {"cuCtxPushCurrent", as_entry<decltype(cuCtxPushCurrent)>(push_current)},
      {"cuCtxPopCurrent", as_entry<decltype(cuCtxPopCurrent)>(pop_current)},
      {"cuDeviceGet", as_entry<decltype(cuDeviceGet)>(get_ordinal)},
      {"cuDevicePrimaryCtxRetain", as_entry<decltype(cuDevicePrimaryCtxRetain)>(retain_primary)},
      {"cuDeviceGetAttribute", as_entry<decltype(cuDeviceGetAttribute)>(device_attribute)},
      {"cuMemGetAllocationGranularity", as_entry<decltype(cuMemGetAllocationGranularity)>(allocation_granularity)},
      {"cuMemCreate", as_entry<decltype(cuMemCreate)>(create_memory)},
      {"cuMemRelease", as_entry<decltype(cuMemRelease)>(release_memory)},
      {"cuMemAddressReserve", as_entry<decltype(cuMemAddressReserve)>(reserve_addresses)},
      {"cuMemAddressFree", as_entry<decltype(cuMemAddressFree)>(free_addresses)},
      {"cuMemMap", as_entry<decltype(cuMemMap)>(map_memory)},
      {"cuMemUnmap", as_entry<decltype(cuMemUnmap)>(unmap_memory)},
      {"cuMemSetAccess", as_entry<decltype(cuMemSetAccess)>(set_access)},
      {"cuMemExportToShareableHandle", as_entry<decltype(cuMemExportToShareableHandle)>(export_memory)},
      {"cuMemImportFromShareableHandle", as_entry<decltype(cuMemImportFromShareableHandle)>(import_memory)},
      {"cuMemGetAddressRange", as_entry<decltype(cuMemGetAddressRange)>(address_range)},
      {"cuMemGetHandleForAddressRange", as_entry<decltype(cuMemGetHandleForAddressRange)>(handle_for_range)},
      {"cuStreamWriteValue32", as_entry<decltype(cuStreamWriteValue32)>(stream_write_value)},
      {"cuStreamWaitValue32", as_entry<decltype(cuStreamWaitValue32)>(stream_wait_value)},
      {"cuGetErrorString", as_entry<decltype(cuGetErrorString)>(text_of)},
      {"cuGetErrorName", as_entry<decltype(cuGetErrorName)>(name_of)},
      {"cuMulticastCreate", as_entry<decltype(cuMulticastCreate)>(create_multicast)},
      {"cuMulticastAddDevice", as_entry<decltype(cuMulticastAddDevice)>(add_to_multicast)},
      {"cuMulticastBindMem", as_entry<decltype(cuMulticastBindMem)>(bind_memory)},
      {"cuMulticastUnbind", as_entry<decltype(cuMulticastUnbind)>(unbind_memory)},
      {"cuMulticastGetGranularity", as_entry<decltype(cuMulticastGetGranularity)>(multicast_granularity)},
  };
  return all;
}

cudaError_t find_entry(const char* name, void** function, cudaDriverEntryPointQueryResult* found) {
  if (name == nullptr || function == nullptr) return cudaErrorInvalidValue;
  const auto entry = entries().find(name);
  *function = entry == entries().end() ? nullptr : entry->second;
  if (found != nullptr)
    *found = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // namespace
}  // namespace tutti::cudart

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  return tutti::cudart::keep(tutti::cudart::find_entry(name, function, found));
}

// PyTorch looks for this function in libcuda.so.1.
CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  using namespace tutti::cudart;
  return driver_without_context([&](Lock&) {
    if (!is_device(ordinal)) return cudaErrorInvalidDevice;
    if (flags == nullptr || active == nullptr) return cudaErrorInvalidValue;
    *flags = 0;
    *active = device_state(ordinal).active ? 1 : 0;
    return cudaSuccess;
  });
}

}  // extern "C"
