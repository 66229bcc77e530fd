// Queues of work that a thread of the library does in order beside the caller's, and marks in them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "src/base/service_thread.h"
#include "src/base/status.h"

namespace tutti {

// Any thread may use it. An idle stream sleeps.
class Stream {
 public:
  // Fails if the system gives no thread.
  static Result<std::unique_ptr<Stream>> create();
  ~Stream();  // Does what was enqueued first.
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void enqueue(std::function<Status()> work);
  // Waits for all that was enqueued; the first failure since the last synchronize, if any.
  Status synchronize();
  bool idle() const;
  // Returns what synchronize() would return if the stream is idle, without clearing it.
  Status failure() const;

 private:
  Stream() = default;
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable arrived_, finished_;
  std::deque<std::function<Status()>> queue_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t done_ = 0;
  Status failure_;
  bool ending_ = false;
  std::unique_ptr<ServiceThread> worker_;  // Last: it uses the members above.
};

// A mark in a stream: reached when the stream has done what was enqueued before the last record(). Any thread.
class Event {
 public:
  void record(Stream& stream);
  // Later work of `stream` waits for the mark as it is now, even if it is recorded again.
  void hold(Stream& stream) const;
  void synchronize() const;
  bool reached() const;

 private:
  struct Mark {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;

    void set();
    void wait();
  };
  std::shared_ptr<Mark> mark() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Mark> mark_;  // Shared with the work in streams, which may outlive the event.
};

}  // namespace tutti
