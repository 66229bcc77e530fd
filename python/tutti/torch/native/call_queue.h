#pragma once
// Order of the calls of a communicator. A call runs in one of three threads:
//   the caller's, if the caller blocks and nothing is pending, or if the caller is a callback of a running call;
//   a waiting thread, which runs the pending calls up to the one that it waits for;
//   the queue's own thread, which starts with the first call that is queued.

#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace tutti_torch {

class CallWork;
using CallPtr = c10::intrusive_ptr<CallWork>;

// Held by a std::shared_ptr. Its thread holds it too, so stop() must precede the release of the last other pointer.
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  enum class Mode { kBlocking, kAsync };

  CallQueue();
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Runs `call` in this thread or queues it; see above. Refuses it after stop(), and if the queue's thread cannot be
  // started. Thread-safe.
  void submit(const CallPtr& call, Mode mode);

  // Runs pending calls in this thread until `call` has completed. Returns early if another thread is running calls.
  void help(const CallWork& call);

  // Returns whether all calls are complete. Their callbacks may still run.
  bool is_idle() const { return incomplete_ == 0; }

  // Counts a call of submit() as complete. The call does this before its waits end.
  void count_complete() { --incomplete_; }

  // Waits until all calls have completed, and ends the queue's thread. Later calls are refused.
  //   GIL: not held by the caller, because callbacks of calls may need it.
  //   In a callback of a call: does not wait.
  //   In a child of fork(): does nothing.
  void stop();

 private:
  using Lock = std::unique_lock<std::mutex>;
  void run_next(Lock& lock);
  void release(Lock& lock);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;  // Notified when a call is queued, and when no thread runs calls any more.
  std::deque<CallPtr> pending_;
  std::atomic<size_t> incomplete_{0};  // Number of calls.
  bool running_ = false;               // Whether a thread, runner_, runs calls.
  bool stopped_ = false;
  std::thread::id runner_;
  std::thread thread_;
  int process_;
};

}  // namespace tutti_torch
