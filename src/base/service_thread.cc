#include "src/base/service_thread.h"

#include <signal.h>

#include <cerrno>

namespace tutti {

void* LibraryThread::run(void* self) {
  auto& thread = *static_cast<LibraryThread*>(self);
  thread.work_();
  thread.finished_.store(true, std::memory_order_release);
  return nullptr;
}

Result<std::unique_ptr<LibraryThread>> LibraryThread::start(std::function<void()> work, std::size_t stack_bytes) {
  std::unique_ptr<LibraryThread> made(new LibraryThread(std::move(work)));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits the mask.
  errno = ::pthread_create(&made->thread_, &attributes, run, made.get());
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  errno = error;
  if (error != 0) return system_error("start a thread (ulimit -u, ulimit -v and the cgroup's pids.max are its limits)");
  made->started_ = true;
  return made;
}

LibraryThread::~LibraryThread() {
  if (started_) ::pthread_join(thread_, nullptr);
}

}  // namespace tutti
