// Threads that the library starts in the program's process.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace tutti::nccl {

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
