// Which device the runtime's calls of a thread are for, for a while.
//
// The runtime has cudaSetDevice for that, which leaves things behind: given back to device 0, a thread that never chose
// one gets a context there, of hundreds of MB. So the device's primary context is pushed onto the thread's stack of
// them and popped, and what the thread had is untouched: its context or that it has none, and the device that it has
// chosen. The primary context itself stays, which is what memory and streams of the device live in.
#pragma once

#include "src/executor/cuda/driver.h"

namespace tutti {

class ThreadContext {
 public:
  // A context of the device that is current already stays, be it the primary one or the program's own.
  ThreadContext(const Driver& driver, int ordinal);
  ~ThreadContext();
  ThreadContext(const ThreadContext&) = delete;
  ThreadContext& operator=(const ThreadContext&) = delete;

  // False: the driver would not, as after cudaDeviceReset(), which destroys contexts that others use; the thread is as
  // it was.
  bool holds() const { return holds_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  bool holds_ = false;
};

}  // namespace tutti
