#include "src/communicator/peers/deferred_frees.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/atomic.h"

namespace tutti {
namespace {

struct Leaving {
  std::shared_ptr<RankDeviceMemory> memory;
  // Ranks on this host. Recorded here, because an adopted board does not know which ranks are remote.
  std::vector<Rank> here;
  Board board;
};

struct DeferredFrees {
  explicit DeferredFrees(const DeferredFrees* parent) : of_parent(parent) {}

  const DeferredFrees* const of_parent;  // In a child of fork(), never used.
  std::mutex mutex;                      // Guards the following.
  std::list<Leaving> leaving;
  std::vector<std::function<void()>> until_idle;
  std::vector<const std::function<bool()>*> sources;  // Each returns true if none of its calls is in flight.
  std::uint32_t launches = 0;                         // Threads that hold a LaunchLock.
  std::thread::id freeing;                            // The thread that frees memory, if any.
  std::condition_variable freed;                      // Notified when no thread frees memory any more.
};

// Never destroyed: communicators may outlive the program's static objects. A child of fork() starts anew, because it
// has no calls, and it must not free what its parent deferred.
DeferredFrees& deferred_frees() {
  static DeferredFrees* of_process = [] {
    ::pthread_atfork(nullptr, nullptr, [] { of_process = new DeferredFrees(of_process); });
    return new DeferredFrees(nullptr);
  }();
  return *of_process;
}

// Created when the library is loaded. A fork() during the first use would leave the child waiting for it to end.
[[maybe_unused]] const DeferredFrees& made_at_load = deferred_frees();

bool all_have_left(const Board& board, const std::vector<Rank>& here) {
  return std::all_of(here.begin(), here.end(), [&](Rank rank) { return load_acquire(&board.entry(rank).left) != 0; });
}

// True if the memory need not be kept for the peers any more. After a failure it is unknown which peers are alive, so
// the exported lanes are then never freed. While another rank holds the memory, for example one whose memory was
// leaked, its thread blocks may still use the memory, which is therefore kept.
bool is_over(const Board& board, const std::vector<Rank>& here, const std::shared_ptr<RankDeviceMemory>& memory) {
  if (all_have_left(board, here)) return true;
  if (!board.failed() || memory.use_count() > 1) return false;
  memory->retain_exported_lanes();
  return true;
}

// Frees without `mutex`, because frees may take long and may defer other frees. They do not wait for calls: none is in
// flight or launched. While a thread frees, other threads wait here, so that their memory is freed when they return.
void run_idle_frees() {
  DeferredFrees& deferred = deferred_frees();
  std::unique_lock lock(deferred.mutex);
  if (deferred.freeing == std::this_thread::get_id()) return;  // The caller of this free runs the frees that it adds.
  deferred.freed.wait(lock, [&] { return deferred.freeing == std::thread::id(); });
  if (deferred.launches > 0) return;
  // Looking at the sources asks devices, so the queue is examined first.
  const auto is_idle = [](const auto* source) { return (*source)(); };
  while (!deferred.until_idle.empty() && std::all_of(deferred.sources.begin(), deferred.sources.end(), is_idle)) {
    std::vector<std::function<void()>> frees = std::exchange(deferred.until_idle, {});
    deferred.freeing = std::this_thread::get_id();
    lock.unlock();
    for (const std::function<void()>& free : frees) free();
    frees.clear();
    lock.lock();
  }
  if (deferred.freeing == std::thread::id()) return;
  deferred.freeing = {};
  deferred.freed.notify_all();
}

void free_left_memory() {
  DeferredFrees& deferred = deferred_frees();
  std::list<Leaving> done;  // Freed without the lock, because this may take long.
  const std::lock_guard lock(deferred.mutex);
  auto& all = deferred.leaving;
  for (auto leaving = all.begin(); leaving != all.end();) {
    const auto next = std::next(leaving);
    // Without a descriptor, the board cannot be watched.
    const bool known = leaving->board.segment().data() != nullptr;
    if (known && is_over(leaving->board, leaving->here, leaving->memory)) done.splice(done.end(), all, leaving);
    leaving = next;
  }
}

}  // namespace

DeviceCallSource::DeviceCallSource(std::function<bool()> is_idle) : is_idle_(std::move(is_idle)) {
  const std::lock_guard lock(deferred_frees().mutex);
  deferred_frees().sources.push_back(&is_idle_);
}

DeviceCallSource::~DeviceCallSource() {
  const std::lock_guard lock(deferred_frees().mutex);
  std::erase(deferred_frees().sources, &is_idle_);
}

LaunchLock::LaunchLock() {
  DeferredFrees& deferred = deferred_frees();
  std::unique_lock lock(deferred.mutex);
  deferred.freed.wait(lock, [&] { return deferred.freeing == std::thread::id(); });
  ++deferred.launches;
}

LaunchLock::~LaunchLock() {
  const std::lock_guard lock(deferred_frees().mutex);
  --deferred_frees().launches;
}

void free_when_idle(std::function<void()> free) {
  {
    const std::lock_guard lock(deferred_frees().mutex);
    deferred_frees().until_idle.push_back(std::move(free));
  }
  run_idle_frees();
}

void keep_until_all_have_left(std::shared_ptr<RankDeviceMemory> memory, const Board& board) {
  std::vector<Rank> here;
  for (Rank rank = 0; rank < board.ranks(); ++rank) {
    if (!board.is_remote(rank)) here.push_back(rank);
  }
  if (is_over(board, here, memory)) return;
  Leaving leaving{std::move(memory), std::move(here), {}};
  Result<File> file = board.segment().duplicate();
  if (file.ok()) {
    Result<Board> own = Board::adopt(std::move(file).value(), board.ranks(), board.ranks_here());
    if (own.ok()) leaving.board = std::move(own).value();
  }
  const std::lock_guard lock(deferred_frees().mutex);
  deferred_frees().leaving.push_back(std::move(leaving));
}

void run_deferred_frees() {
  free_left_memory();
  run_idle_frees();
}

void free_cached(const std::shared_ptr<Device>& device) {
  run_deferred_frees();
  free_when_idle([device] { device->free_kept(); });
}

Result<std::byte*> allocate_or_free_cached(const std::shared_ptr<Device>& device,
                                           Result<std::byte*> (Device::*allocate)(std::size_t), std::size_t bytes) {
  Result<std::byte*> memory = (*device.*allocate)(bytes);
  if (memory.ok()) return memory;
  free_cached(device);
  return (*device.*allocate)(bytes);
}

}  // namespace tutti
