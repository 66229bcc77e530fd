// A thread of the library's own: it blocks all signals, needs little memory, and ends with its owner.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <memory>

#include "src/base/status.h"

namespace tutti {

class ServiceThread {
 public:
  static Result<std::unique_ptr<ServiceThread>> start(std::function<void()> work);
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
