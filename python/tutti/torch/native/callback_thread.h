#pragma once
// Thread for callbacks of the program at the end of messages, and after failures. The library's thread, which serves
// all messages of the process, must neither run them nor wait for the GIL.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tutti_torch {

// Held by a std::shared_ptr. The thread starts with the first function and holds it too, so stop() must precede the
// release of the last other pointer.
class CallbackThread : public std::enable_shared_from_this<CallbackThread> {
 public:
  using Function = std::function<void()>;

  CallbackThread();
  ~CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  // Runs and destroys `function` after earlier ones: in this object's thread, or in the caller's after stop() or if no
  // thread can be started. Exceptions of functions become warnings.
  void post(Function function);

  // Waits until all functions have run, and ends the thread. Several threads may call it.
  //   GIL: not held by the caller.
  //   In a function of this thread: does not wait.
  //   In a child of fork(): does nothing.
  void stop();

 private:
  bool start_thread();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;  // Notified when a function is pending, after stop(), and when the thread ends.
  std::deque<Function> pending_;
  bool stopped_ = false;
  std::thread thread_;
  std::thread::id worker_;  // The thread until it ends.
  int process_;
};

}  // namespace tutti_torch
