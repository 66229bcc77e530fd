// Queues of work that a library thread runs in order, and events in these queues.
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

// Thread-safe. An idle stream sleeps.
class Stream {
 public:
  // Fails if no thread can be created.
  static Result<std::unique_ptr<Stream>> create();
  ~Stream();  // Finishes enqueued work first.
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void enqueue(std::function<Status()> work);
  // Enqueues a call of `function`, which receives the first failure since the previous callback.
  void enqueue_callback(std::function<void(const Status&)> function);
  // Waits for all enqueued work. Returns the first failure since the last synchronize().
  Status synchronize();
  bool idle() const;
  // Returns the error that synchronize() would return on an idle stream, without clearing it.
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
  Status unreported_;  // First failure since the last callback. Only serve() uses it.
  bool ending_ = false;
  std::unique_ptr<LibraryThread> worker_;  // Last: it uses the members above.
};

// A point in a stream: reached when the stream has finished the work enqueued before the last record(). Thread-safe.
class Event {
 public:
  void record(Stream& stream);
  // Makes later work of `stream` wait for the current point, even if the event is recorded again.
  void hold(Stream& stream) const;
  void synchronize() const;
  // Like synchronize(), for at most timeout_ms, or without limit if that is negative. Returns reached().
  bool synchronize_for(std::int64_t timeout_ms) const;
  bool reached() const { return synchronize_for(0); }

 private:
  struct Mark {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;

    void set();
    void wait();
    bool wait_for(std::int64_t timeout_ms);
  };
  std::shared_ptr<Mark> mark() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Mark> mark_;  // Shared with work in streams, which may outlive the event.
};

}  // namespace tutti
