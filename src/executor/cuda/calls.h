// Helpers around CUDA calls: select the device, permit calls during stream capture, and convert errors.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "src/base/status.h"
#include "src/executor/cuda/thread_context.h"

namespace tutti {

// Converts a CUDA error to a Status with call and device name. Clears the thread's last error, which the next call
// would otherwise return again.
Status cuda_status(cudaError_t error, const char* call, const std::string& device);

// True if CUDA knows the memory, and it is of this type.
bool is_memory(cudaMemoryType type, const std::byte* memory);

// Selects a device for the calling thread and relaxes its stream-capture mode, until destruction. Calls are then
// permitted while any stream is being captured. If the driver cannot push contexts (see thread_context.h), the device
// is set and restored instead. A thread without a context then keeps one on its previous current device.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) : context_(driver(), ordinal) {
    changed_ = !context_.holds() && cudaGetDevice(&before_) == cudaSuccess && before_ != ordinal &&
               cudaSetDevice(ordinal) == cudaSuccess;
    cudaThreadExchangeStreamCaptureMode(&mode_);  // With a context current, so that this call creates none.
  }
  ~OnDevice() {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const ThreadContext context_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace tutti
