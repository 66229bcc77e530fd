// Threads of the library, in a process that is not ours: signals go to the program's.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace tutti::nccl {

// Throws std::system_error if the system gives no thread.
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
