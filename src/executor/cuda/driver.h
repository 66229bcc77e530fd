// The functions of CUDA's driver that the runtime has no like of, found at run time: nothing is linked with libcuda.
#pragma once

#include <cuda.h>

namespace tutti {

// Null: there is no driver, or an old one. The version of its interface is that of CUDA 12.
void* find_in_driver(const char* name);

template <typename Function>
bool find_in_driver(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(find_in_driver(name));
  return function != nullptr;
}

// Of contexts and the calling thread. All there, or none.
struct DriverCalls {
  decltype(&cuCtxGetCurrent) get_current = nullptr;
  decltype(&cuCtxGetDevice) get_device = nullptr;
  decltype(&cuCtxPushCurrent) push = nullptr;
  decltype(&cuCtxPopCurrent) pop = nullptr;
  decltype(&cuDeviceGet) find = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;

  bool known() const { return retain != nullptr; }
};

// Looked up once. Not known(): there is no driver, or an old one.
const DriverCalls& driver_calls();

}  // namespace tutti
