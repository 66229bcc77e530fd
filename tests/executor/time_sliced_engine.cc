#include "tests/executor/time_sliced_engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "src/executor/thread_block/run_call.h"
#include "tests/executor/host_thread_block.h"

namespace tutti::test {
namespace {

// Rounds without progress after which the engine reports a deadlock. Publishing buffer addresses is not progress,
// and neither is the timeout of a thread before another thread of its thread block.
constexpr int kIdleRounds = 1000;

}  // namespace

std::string TimeSlicedEngine::run(const std::vector<std::vector<KernelCall>>& calls, std::uint32_t channels) {
  const FailedWords failed;
  KernelProgress progress;
  std::vector<Sharer> sharers(calls.size());
  for (std::size_t rank = 0; rank < calls.size(); ++rank)
    sharers[rank] = {.calls = &calls[rank], .progress = std::vector<ThreadBlockProgress>(channels)};
  const auto all_done = [&] {
    return std::all_of(sharers.begin(), sharers.end(), [](const Sharer& each) { return each.done(); });
  };
  bool moved = true;
  for (int idle = 0; !all_done(); ++idle) {
    const bool moved_before = std::exchange(moved, false);
    for (std::size_t rank = 0; rank < sharers.size(); ++rank) {
      if (rank == slow_ && moved_before) continue;
      Sharer& sharer = sharers[rank];
      const KernelWatch watch = {
          .failed = &failed, .timeout_ns = 0, .kernel_progress = &progress, .number = 1, .progress = nullptr};
      moved = (!sharer.done() && run_time_slice(sharer, watch)) || moved;
    }
    if (progress.report.written != 0) return "a thread block has failed";
    if (moved) idle = 0;
    if (idle == kIdleRounds) return "no rank gets ahead";
  }
  return "";
}

bool TimeSlicedEngine::run_time_slice(Sharer& sharer, KernelWatch watch) {
  ++launches_;
  const std::vector<ThreadBlockProgress> before = sharer.progress;
  watch.progress = sharer.progress.data();
  launch(sharer, watch);
  const bool done = std::all_of(sharer.progress.begin(), sharer.progress.end(),
                                [](const ThreadBlockProgress& each) { return each.state == ThreadBlockState::done; });
  const bool moved =
      !std::equal(before.begin(), before.end(), sharer.progress.begin(),
                  [](const auto& a, const auto& b) { return a.state == b.state && a.cursor == b.cursor; });
  if (done) {
    ++sharer.operation;
    std::fill(sharer.progress.begin(), sharer.progress.end(), ThreadBlockProgress{});
  }
  return moved;
}

void TimeSlicedEngine::launch(const Sharer& sharer, KernelWatch watch) const {
  BatchCall entry;
  entry.call = (*sharer.calls)[sharer.operation];
  entry.watch = watch;
  entry.channels = static_cast<std::uint32_t>(sharer.progress.size());
  const ChannelLayout layout(*reinterpret_cast<const Image*>(entry.call.image));
  for (std::uint32_t channel = 0; channel < entry.channels; ++channel) {
    HostThread::Shared block(thread_count_, layout.bytes);
    std::vector<std::thread> others;
    const auto work = [&](std::uint32_t thread) {
      run_call(entry, channel, WatchedHostThreadBlock(block, thread, entry.watch, channel), block.memory().data());
    };
    for (std::uint32_t thread = 1; thread < thread_count_; ++thread) others.emplace_back(work, thread);
    work(0);
    for (std::thread& other : others) other.join();
  }
}

}  // namespace tutti::test
