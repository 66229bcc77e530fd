// Threads of the host that emulate thread blocks of a GPU. They run the same source as a GPU, so reports of
// ThreadSanitizer apply to GPU threads as well.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
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

// A thread of a thread block, without its watch.
class HostWorker {
 public:
  // State shared by the threads of a thread block.
  class Shared {
   public:
    Shared(std::uint32_t workers, std::size_t bytes)
        : workers_(workers), barrier_(workers), progress_(workers), memory_(bytes / sizeof(Pack) + 1) {}
    std::span<std::byte> memory() { return std::as_writable_bytes(std::span(memory_)); }

   private:
    friend class HostWorker;
    std::uint32_t workers_;
    std::barrier<> barrier_;
    std::vector<Progress> progress_;
    std::vector<Pack> memory_;
  };

  HostWorker(Shared& shared, std::uint32_t worker) : shared_(&shared), worker_(worker) {}

  std::uint32_t worker() const { return worker_; }
  std::uint32_t workers() const { return shared_->workers_; }
  std::uint32_t slice(std::uint32_t number) const { return number % shared_->workers_; }
  void join() { shared_->barrier_.arrive_and_wait(); }
  Progress agree(Progress progress);

 private:
  Shared* shared_;
  std::uint32_t worker_;
};

class HostThreadBlock : public HostWorker {
 public:
  HostThreadBlock(Shared& shared, std::uint32_t worker, Watch& watch) : HostWorker(shared, worker), watch_(&watch) {}
  bool stopped() const { return watch_->stuck(); }
  bool too_late() const { return false; }

 private:
  Watch* watch_;
};

// Thread that watches the words of a KernelWatch, like a thread block on a device.
class WatchedHostThreadBlock : public HostWorker {
 public:
  WatchedHostThreadBlock(Shared& shared, std::uint32_t worker, const KernelWatch& watch)
      : HostWorker(shared, worker), watch_(&watch), began_(std::chrono::steady_clock::now()) {}
  bool stopped();
  bool too_late() const { return load_acquire(watch_->failed) != 0; }

 private:
  const KernelWatch* watch_;
  std::uint32_t polls_ = 0;
  std::chrono::steady_clock::time_point began_;
};

class HostEngine final : public Engine {
 public:
  explicit HostEngine(std::uint32_t workers) : workers_(workers) {}
  std::pmr::memory_resource* memory() override { return std::pmr::get_default_resource(); }
  std::string run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) override;

 private:
  std::uint32_t workers_;  // Threads per thread block.
};

}  // namespace tutti::test
