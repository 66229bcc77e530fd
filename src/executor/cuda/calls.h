// What calls of CUDA need around them: the device they are for, leave to be made while a stream is captured, and words
// for their errors.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "src/base/status.h"

namespace tutti {

// What a CUDA function returned, as a sentence with the device's name; takes the error back from CUDA, which would give
// it to the thread's next call as well.
Status cuda_status(cudaError_t error, const char* call, const std::string& device);

// Makes a device the thread's current one, and its calls such as may be made while any stream is being captured, until
// it goes.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    changed_ = cudaGetDevice(&before_) == cudaSuccess && before_ != ordinal && cudaSetDevice(ordinal) == cudaSuccess;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
    cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace tutti
