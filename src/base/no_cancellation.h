// Postpones pthread_cancel() of the calling thread until the end of a scope.
#pragma once

#include <pthread.h>

namespace tutti {

// System calls are cancellation points. Cancellation would unwind through functions that do not support it, with the
// program's unwinder instead of the library's, and end the process. Costs a few nanoseconds; for slow paths only.
class NoCancellation {
 public:
  NoCancellation() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() {
    int disabled = 0;
    ::pthread_setcancelstate(before_, &disabled);
  }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace tutti
