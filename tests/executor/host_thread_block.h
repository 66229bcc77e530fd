// Threads of the host that emulate thread blocks of a GPU. They run the same source as a GPU, so reports of
// ThreadSanitizer apply to GPU threads as well.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "src/executor/thread_block/batch.h"
#include "tests/executor/engine.h"

namespace tutti::test {

// State that all threads of a run watch, so that one failure ends all of them.
struct Watch {
  std::atomic<bool> failed{false};
  std::atomic<std::uint64_t> moves{0};

  // Yields the CPU. Returns true if a thread has failed or no thread has progressed for a long time. Threads call it in
  // waits.
  bool stuck();
};

// A barrier whose threads sleep. Threads of std::barrier yield first, for several time slices beside busy programs.
class SleepingBarrier {
 public:
  explicit SleepingBarrier(std::uint32_t thread_count) : thread_count_(thread_count) {}
  void arrive_and_wait();

 private:
  const std::uint32_t thread_count_;
  std::mutex mutex_;
  std::condition_variable completed_;
  std::uint32_t arrived_ = 0;
  std::uint64_t phase_ = 0;
};

// A thread of a thread block, without its watch.
class HostThread {
 public:
  // State shared by the threads of a thread block.
  class Shared {
   public:
    Shared(std::uint32_t thread_count, std::size_t bytes)
        : thread_count_(thread_count),
          barrier_(thread_count),
          progress_(thread_count),
          memory_(bytes / sizeof(Pack) + 1) {}
    std::span<std::byte> memory() { return std::as_writable_bytes(std::span(memory_)); }

   private:
    friend class HostThread;
    std::uint32_t thread_count_;
    SleepingBarrier barrier_;
    std::vector<Progress> progress_;
    std::vector<Pack> memory_;
  };

  HostThread(Shared& shared, std::uint32_t thread) : shared_(&shared), thread_(thread) {}

  std::uint32_t thread() const { return thread_; }
  std::uint32_t thread_count() const { return shared_->thread_count_; }
  std::uint32_t slice(std::uint32_t number) const { return number % shared_->thread_count_; }
  MessagePart part(std::uint32_t halvings) const {
    const std::uint32_t size = thread_count() >> halvings;
    return {thread_ / size, thread_count() / size, {thread_ % size, size}};
  }
  void join() { shared_->barrier_.arrive_and_wait(); }
  Progress agree(Progress progress);

 private:
  Shared* shared_;
  std::uint32_t thread_;
};

class HostThreadBlock : public HostThread {
 public:
  HostThreadBlock(Shared& shared, std::uint32_t thread, Watch& watch) : HostThread(shared, thread), watch_(&watch) {}
  bool stopped() const { return watch_->stuck(); }
  bool too_late() const { return false; }

 private:
  Watch* watch_;
};

// Thread that watches the words of a KernelWatch, like a thread block on a device.
class WatchedHostThreadBlock : public HostThread {
 public:
  WatchedHostThreadBlock(Shared& shared, std::uint32_t thread, const KernelWatch& watch, std::uint32_t channel)
      : HostThread(shared, thread),
        watch_(&watch),
        failed_(watch.failed->of(channel)),
        began_(std::chrono::steady_clock::now()) {}
  bool stopped();
  bool too_late() const { return load_acquire(failed_) != 0; }

 private:
  const KernelWatch* watch_;
  const std::uint32_t* failed_;
  std::uint32_t polls_ = 0;
  std::chrono::steady_clock::time_point began_;
};

class HostEngine final : public Engine {
 public:
  explicit HostEngine(std::uint32_t thread_count) : thread_count_(thread_count) {}
  std::pmr::memory_resource* memory() override { return std::pmr::get_default_resource(); }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

 private:
  std::uint32_t thread_count_;  // Threads per thread block.
};

}  // namespace tutti::test
