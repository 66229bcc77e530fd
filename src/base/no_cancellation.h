// Postpones pthread_cancel() of the calling thread until the end of a scope.
#pragma once

#include <pthread.h>

namespace tutti {

// System calls are cancellation points. A thread that was cancelled in one would unwind through functions that are not
// prepared for it, with the unwinder of the program instead of the library's own, and end the process. For slow paths:
// each takes a few nanoseconds.
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
