// Makes a device current for the CUDA runtime calls of one thread, for a limited time.
//
// cudaSetDevice() would leave traces. Restoring device 0 in a thread that never chose a device creates a context there,
// which takes hundreds of MB. This class pushes the device's primary context to the thread's context stack and pops it
// again. The thread keeps its context, or the absence of one, and its chosen device. The primary context itself stays;
// memory and streams of the device belong to it.
#pragma once

#include "src/executor/cuda/driver.h"

namespace tutti {

class ThreadContext {
 public:
  // A current context of the same device is kept, whether it is the primary one or the program's own.
  ThreadContext(const Driver& driver, int ordinal);
  ~ThreadContext();
  ThreadContext(const ThreadContext&) = delete;
  ThreadContext& operator=(const ThreadContext&) = delete;

  // False if the driver refused, as after cudaDeviceReset(), which destroys contexts in use. The thread is then
  // unchanged.
  bool holds() const { return holds_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  bool holds_ = false;
};

}  // namespace tutti
