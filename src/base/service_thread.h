// A thread of the library: blocks all signals, has a small stack, and is joined by its owner's destructor.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "src/base/status.h"

namespace tutti {

// glibc places all thread-local storage of the process on this stack.
inline constexpr std::size_t kServiceStackBytes = 256 * 1024;

class ServiceThread {
 public:
  // Fails if the system cannot create a thread.
  static Result<std::unique_ptr<ServiceThread>> start(std::function<void()> work,
                                                      std::size_t stack_bytes = kServiceStackBytes);
  ~ServiceThread();  // Waits for `work` to return.
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  bool finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  explicit ServiceThread(std::function<void()> work) : work_(std::move(work)) {}
  static void* run(void* self);

  std::function<void()> work_;
  std::atomic<bool> finished_{false};
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tutti
