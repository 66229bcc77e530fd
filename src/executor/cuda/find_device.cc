// The devices of this process, created on first use and never destroyed, because the driver may be unloaded before the
// last thread ends.
#include <map>
#include <mutex>

#include "src/executor/cuda/calls.h"
#include "src/executor/cuda/cuda_device.h"

namespace tutti {
namespace {

struct Devices {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Device>> by_ordinal;
};

// Reports why CUDA is not usable.
Status no_cuda(cudaError_t error) {
  cudaGetLastError();
  const int version = driver_version();
  if (version == 0) return no_driver();
  if (error == cudaErrorInsufficientDriver) {  // Drivers support all minor versions of their major version.
    const int needed = CUDART_VERSION / 1000 * 1000;
    return unsupported("the NVIDIA driver is for CUDA " + version_text(version) + ", and this library needs one for " +
                       version_text(needed) +
                       " or newer: install a newer driver (nvidia-smi shows the installed one), " +
                       "or build the library with the toolkit of CUDA " + std::to_string(version / 1000));
  }
  if (error == cudaErrorNoDevice) {
    return unsupported("no GPU is available to this process; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  return cuda_status(error, "cudaGetDeviceCount", "this machine");
}

// Returns at least 1, or an error.
Result<int> count_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return no_cuda(error);
  return count;
}

}  // namespace

Result<int> current_device() {
  TUTTI_TRY(count_devices());
  int ordinal = 0;
  TUTTI_CHECK_OK(cuda_status(cudaGetDevice(&ordinal), "cudaGetDevice", "this machine"));
  return ordinal;
}

Result<std::shared_ptr<Device>> find_device(int ordinal) {
  static auto& devices = *new Devices;
  const int count = TUTTI_TRY(count_devices());
  if (ordinal == kCurrentDevice) ordinal = TUTTI_TRY(current_device());
  if (ordinal < 0 || ordinal >= count) {
    return invalid_argument("invalid CUDA device " + std::to_string(ordinal) + "; valid devices are 0 to " +
                            std::to_string(count - 1));
  }
  const std::lock_guard lock(devices.mutex);
  std::shared_ptr<Device>& device = devices.by_ordinal[ordinal];
  if (device == nullptr) device = TUTTI_TRY(CudaDevice::make(ordinal));
  return device;
}

}  // namespace tutti
