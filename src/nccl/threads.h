// Threads that the library starts in the program's process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace tutti::nccl {

// Postpones pthread_cancel() of the calling thread until the end of a scope. A cancelled thread would not join the
// threads that it has started.
class CancellationGuard {
 public:
  CancellationGuard() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationGuard() {
    int disabled = 0;
    ::pthread_setcancelstate(before_, &disabled);
  }
  CancellationGuard(const CancellationGuard&) = delete;
  CancellationGuard& operator=(const CancellationGuard&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Starts a thread that blocks all signals, so that the program's threads handle them. Throws std::system_error if the
// system cannot start a thread.
template <typename Work>
std::thread start_thread(Work&& work) {
  struct AllBlocked {
    AllBlocked() {
      sigset_t all;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits it.
    }
    ~AllBlocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } const blocked;
  return std::thread(std::forward<Work>(work));
}

}  // namespace tutti::nccl
