#include "tests/executor/host_thread_block.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "src/executor/thread_block/ll_call.h"
#include "tests/base/share_cpu.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kPollsPerTimeSlice = 4;
constexpr auto kStuck = std::chrono::seconds(60);  // Without progress for this long, the test reports a deadlock.

}  // namespace

bool Watch::stuck() {
  thread_local const Watch* watched = nullptr;
  thread_local std::uint64_t seen = 0;
  thread_local std::chrono::steady_clock::time_point since;
  share_cpu();
  const auto now = std::chrono::steady_clock::now();
  if (watched != this || moves != seen) {
    watched = this;
    seen = moves;
    since = now;
  }
  return failed || now - since > kStuck;
}

void SleepingBarrier::arrive_and_wait() {
  std::unique_lock lock(mutex_);
  if (++arrived_ == thread_count_) {
    arrived_ = 0;
    ++phase_;
    completed_.notify_all();
    return;
  }
  completed_.wait(lock, [this, phase = phase_] { return phase_ != phase; });
}

Progress HostThread::agree(Progress progress) {
  shared_->progress_[thread_] = progress;
  join();
  Progress agreed = Progress::done;
  for (const Progress each : shared_->progress_) {
    if (each != Progress::done && agreed != Progress::mismatch) agreed = each;
  }
  join();
  return agreed;
}

bool WatchedHostThreadBlock::stopped() {
  share_cpu();
  if (watch_->progress != nullptr && ++polls_ >= kPollsPerTimeSlice) return true;
  if (load_acquire(failed_) != 0) return true;
  const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - began_;
  return watch_->timeout_ns != 0 && static_cast<std::uint64_t>(waited.count()) > watch_->timeout_ns;
}

std::string HostEngine::run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) {
  Watch watch;
  std::mutex mutex;
  std::string error;
  const auto work = [&](std::size_t rank, std::uint32_t channel, HostThreadBlock block, std::byte* memory) {
    for (std::size_t operation = 0; operation < calls[rank].size(); ++operation) {
      const auto run_to_end = [&](auto run) {
        const Progress progress = run.run();
        block.join();
        watch.moves.fetch_add(1);
        if (progress == Progress::done) return true;
        const std::lock_guard lock(mutex);
        if (!watch.failed.exchange(true)) {
          error = "rank " + std::to_string(rank) + ", channel " + std::to_string(channel) + ", operation " +
                  std::to_string(operation) + ", step " + std::to_string(run.cursor().step) +
                  (progress == Progress::mismatch ? ": a message of another call" : ": waits without end");
        }
        return false;
      };
      const KernelCall& call = calls[rank][operation];
      const bool ll = call.ll != 0 && call.task.reduction != Reduction::pre_mul_sum;
      const bool done = ll ? run_to_end(LlCall<HostThreadBlock>(call, channel, block, memory))
                           : run_to_end(Channel<HostThreadBlock>(call, channel, block, memory));
      if (!done) return;
    }
  };
  std::vector<std::unique_ptr<HostThreadBlock::Shared>> thread_blocks;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const ChannelLayout layout(*reinterpret_cast<const Image*>(calls[rank].front().image));
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      thread_blocks.push_back(std::make_unique<HostThreadBlock::Shared>(thread_count_, layout.bytes));
      HostThreadBlock::Shared& block = *thread_blocks.back();
      for (std::uint32_t thread = 0; thread < thread_count_; ++thread)
        threads.emplace_back(work, rank, channel, HostThreadBlock(block, thread, watch), block.memory().data());
    }
  }
  for (std::thread& thread : threads) thread.join();
  return error;
}

}  // namespace tutti::test
