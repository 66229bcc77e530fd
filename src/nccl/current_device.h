// The current GPU of a thread that this library has started, for calls into NVIDIA's NCCL.
#pragma once

namespace tutti::nccl {

// Makes the device current in this thread, as cudaSetDevice() does, and restores the previous context at the end. Does
// nothing if the process has not loaded the driver.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  void* driver_ = nullptr;
  int device_ = -1;  // The driver's number; -1: nothing was changed.
};

}  // namespace tutti::nccl
