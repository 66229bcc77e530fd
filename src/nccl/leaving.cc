#include "src/nccl/leaving.h"

#include <unistd.h>

#include <atomic>
#include <list>
#include <mutex>
#include <utility>

#include "src/nccl/threads.h"

namespace tutti::nccl {
namespace {

void end(Leaver& leaver) {
  if (leaver.job.joinable()) {
    if (leaver.job.get_id() == std::this_thread::get_id()) {
      leaver.job.detach();  // It was the last to hold the communicator.
    } else {
      leaver.job.join();
    }
  }
  tutti_stream_destroy(leaver.stream);
  tutti_comm_destroy(leaver.comm);  // What it says was told before, or has nobody left to hear it.
}

class Leaving {
 public:
  static Leaving& of_process() {
    static Leaving leaving;
    return leaving;
  }

  void take(Leaver leaver) {
    const std::lock_guard lock(mutex_);
    threads_.remove_if([](Thread& thread) { return thread.joined(); });
    Thread& thread = threads_.emplace_back();
    thread.leaver = std::move(leaver);
    try {
      thread.thread = start_thread([&thread] {
        end(thread.leaver);
        thread.done = true;
      });
    } catch (const std::system_error&) {
      tutti_comm_abort(thread.leaver.comm);  // Now it waits for nobody.
      end(thread.leaver);
      threads_.pop_back();
    }
  }

 private:
  struct Thread {
    Leaver leaver;
    std::atomic<bool> done = false;
    std::thread thread;

    bool joined() {
      if (done) thread.join();
      return !thread.joinable();
    }
  };

  Leaving() = default;
  ~Leaving() {
    // A child of fork() has none of its parent's threads. It leaves them, and what they hold, where they are.
    if (::getpid() != owner_) {
      new std::list<Thread>(std::move(threads_));
      return;
    }
    for (Thread& thread : threads_) thread.thread.join();
  }

  const pid_t owner_ = ::getpid();
  std::mutex mutex_;
  std::list<Thread> threads_;
};

}  // namespace

void leave(Leaver leaver) { Leaving::of_process().take(std::move(leaver)); }

}  // namespace tutti::nccl
