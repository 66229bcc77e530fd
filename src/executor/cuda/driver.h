// The functions of CUDA's driver that the runtime has no like of, found at run time: nothing is linked with libcuda,
// and a machine may have no driver, or an old one without some of them.
#pragma once

#include <cuda.h>

#include <string>

#include "src/base/status.h"

namespace tutti {

// The newest CUDA that the driver is for, as 12040 is for 12.4; 0: there is no driver.
int driver_version();
// "12.4"
std::string version_text(int version);

Status no_driver();
Status missing_in_driver(const char* function);
// What a function of the driver returned, as a sentence.
Status driver_status(CUresult result, const char* function);

template <typename Function>
class DriverFunction;

template <typename... Parameters>
class DriverFunction<CUresult(Parameters...)> {
 public:
  // `find` gives null where there is no such function.
  DriverFunction(const char* name, void* (*find)(const char* name))
      : name_(name), function_(reinterpret_cast<CUresult (*)(Parameters...)>(find(name))) {}

  bool known() const { return function_ != nullptr; }

  // Says that the function is missing, or how it failed, by its name.
  Status operator()(Parameters... parameters) const {
    return known() ? driver_status(function_(parameters...), name_) : missing_in_driver(name_);
  }

 private:
  const char* name_;
  CUresult (*function_)(Parameters...);
};

// All that we call. Trivially destroyed: threads may outlive statics.
struct Driver {
  void* (*find)(const char* name);

  // Of contexts and the calling thread.
  DriverFunction<decltype(cuCtxGetCurrent)> get_context{"cuCtxGetCurrent", find};
  DriverFunction<decltype(cuCtxGetDevice)> get_device{"cuCtxGetDevice", find};
  DriverFunction<decltype(cuCtxPushCurrent)> push_context{"cuCtxPushCurrent", find};
  DriverFunction<decltype(cuCtxPopCurrent)> pop_context{"cuCtxPopCurrent", find};
  DriverFunction<decltype(cuDeviceGet)> find_device{"cuDeviceGet", find};
  DriverFunction<decltype(cuDevicePrimaryCtxRetain)> retain_context{"cuDevicePrimaryCtxRetain", find};

  // Of virtual memory (virtual_memory.h), and of where a program's allocation begins.
  DriverFunction<decltype(cuDeviceGetAttribute)> attribute{"cuDeviceGetAttribute", find};
  DriverFunction<decltype(cuMemGetAllocationGranularity)> granularity{"cuMemGetAllocationGranularity", find};
  DriverFunction<decltype(cuMemCreate)> create_memory{"cuMemCreate", find};
  DriverFunction<decltype(cuMemRelease)> release_memory{"cuMemRelease", find};
  DriverFunction<decltype(cuMemAddressReserve)> reserve_addresses{"cuMemAddressReserve", find};
  DriverFunction<decltype(cuMemAddressFree)> free_addresses{"cuMemAddressFree", find};
  DriverFunction<decltype(cuMemMap)> map{"cuMemMap", find};
  DriverFunction<decltype(cuMemUnmap)> unmap{"cuMemUnmap", find};
  DriverFunction<decltype(cuMemSetAccess)> set_access{"cuMemSetAccess", find};
  DriverFunction<decltype(cuMemExportToShareableHandle)> to_file{"cuMemExportToShareableHandle", find};
  DriverFunction<decltype(cuMemImportFromShareableHandle)> from_file{"cuMemImportFromShareableHandle", find};
  DriverFunction<decltype(cuMemGetAddressRange)> address_range{"cuMemGetAddressRange", find};
  DriverFunction<decltype(cuMemGetHandleForAddressRange)> range_handle{"cuMemGetHandleForAddressRange", find};

  // Of words that streams write and wait for.
  DriverFunction<decltype(cuStreamWriteValue32)> write_word{"cuStreamWriteValue32", find};
  DriverFunction<decltype(cuStreamWaitValue32)> await_word{"cuStreamWaitValue32", find};

  bool pushes_contexts() const {
    return get_context.known() && get_device.known() && push_context.known() && pop_context.known() &&
           find_device.known() && retain_context.known();
  }
  bool has_virtual_memory() const {
    return attribute.known() && granularity.known() && create_memory.known() && release_memory.known() &&
           reserve_addresses.known() && free_addresses.known() && map.known() && unmap.known() && set_access.known() &&
           to_file.known() && from_file.known();
  }
};

// This machine's, looked up once.
const Driver& driver();

}  // namespace tutti
