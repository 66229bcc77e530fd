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

class LibraryThread {
 public:
  // Fails if the system cannot create a thread.
  static Result<std::unique_ptr<LibraryThread>> start(std::function<void()> work,
                                                      std::size_t stack_bytes = kServiceStackBytes);
  ~LibraryThread();  // Waits for `work` to return.
  LibraryThread(const LibraryThread&) = delete;
  LibraryThread& operator=(const LibraryThread&) = delete;

  bool finished() const { return finished_.load(std::memory_order_acquire); }

 private:
  explicit LibraryThread(std::function<void()> work) : work_(std::move(work)) {}
  static void* run(void* self);

  std::function<void()> work_;
  std::atomic<bool> finished_{false};
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tutti
