#include "src/nccl/current_device.h"

#include <dlfcn.h>

namespace tutti::nccl {
namespace {

// Calls a function of the driver. Returns false if the function is missing or fails.
template <typename... Arguments>
bool call(void* driver, const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
  return function != nullptr && function(arguments...) == 0;
}

}  // namespace

// The CUDA runtime uses the current context of the driver, and derives the current device from it.
CurrentDevice::CurrentDevice(int device) : driver_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
  if (driver_ == nullptr) return;
  int found = -1;
  void* context = nullptr;
  if (!call(driver_, "cuDeviceGet", &found, device)) return;
  if (!call(driver_, "cuDevicePrimaryCtxRetain", &context, found)) return;
  if (call(driver_, "cuCtxPushCurrent_v2", context)) {
    device_ = found;
  } else {
    call(driver_, "cuDevicePrimaryCtxRelease_v2", found);
  }
}

CurrentDevice::~CurrentDevice() {
  void* popped = nullptr;
  if (device_ >= 0) {
    call(driver_, "cuCtxPopCurrent_v2", &popped);
    call(driver_, "cuDevicePrimaryCtxRelease_v2", device_);
  }
  if (driver_ != nullptr) ::dlclose(driver_);
}

}  // namespace tutti::nccl
