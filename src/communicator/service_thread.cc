#include "src/communicator/service_thread.h"

#include <signal.h>

#include <cerrno>

namespace tutti {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;  // glibc takes all thread-local storage of the process out of it.

}  // namespace

void* ServiceThread::run(void* self) {
  auto& thread = *static_cast<ServiceThread*>(self);
  thread.work_();
  thread.finished_.store(true, std::memory_order_release);
  return nullptr;
}

Result<std::unique_ptr<ServiceThread>> ServiceThread::start(std::function<void()> work) {
  std::unique_ptr<ServiceThread> made(new ServiceThread(std::move(work)));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits it.
  errno = ::pthread_create(&made->thread_, &attributes, run, made.get());
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  errno = error;
  if (error != 0) return system_error("start a thread");
  made->started_ = true;
  return made;
}

ServiceThread::~ServiceThread() {
  if (started_) ::pthread_join(thread_, nullptr);
}

}  // namespace tutti
