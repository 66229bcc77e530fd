// What calls of CUDA need around them: the device they are for, leave to be made while a stream is captured, and words
// for their errors.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "src/base/status.h"
#include "src/executor/cuda/thread_context.h"

namespace tutti {

// What a CUDA function returned, as a sentence with the device's name; takes the error back from CUDA, which would give
// it to the thread's next call as well.
Status cuda_status(cudaError_t error, const char* call, const std::string& device);

// Has the thread's calls of CUDA go to a device, and makes them such as may be made while any stream is being captured,
// until it goes. Where the driver does not let contexts be pushed (see thread_context.h), the device is set and set
// back, which cannot be undone for a thread that had no context: it has one then, on the device that was its current
// one.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) : context_(driver(), ordinal) {
    changed_ = !context_.holds() && cudaGetDevice(&before_) == cudaSuccess && before_ != ordinal &&
               cudaSetDevice(ordinal) == cudaSuccess;
    cudaThreadExchangeStreamCaptureMode(&mode_);  // With a context there, so that it makes none.
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
