#include "src/communicator/peers/deferred_frees.h"

#include <unistd.h>

#include <algorithm>
#include <list>
#include <mutex>
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
  const int process = ::getpid();
  std::shared_mutex launching;  // Held exclusively by a thread that frees.
  std::mutex mutex;             // Guards the following.
  std::list<Leaving> leaving;
  std::vector<std::function<void()>> until_idle;
  std::vector<const std::function<bool()>*> sources;  // Each returns true if none of its calls is in flight.
};

// Never destroyed: communicators may outlive the program's static objects.
DeferredFrees& deferred_frees() {
  static DeferredFrees& of_process = *new DeferredFrees;
  return of_process;
}

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

// Frees without `mutex`, because frees may take long. They do not wait for calls: none is in flight or launched.
void run_idle_frees() {
  DeferredFrees& deferred = deferred_frees();
  const std::unique_lock no_launch(deferred.launching, std::try_to_lock);
  if (!no_launch) return;
  std::vector<std::function<void()>> frees;
  {
    const std::lock_guard lock(deferred.mutex);
    if (deferred.until_idle.empty()) return;  // Looking at the sources asks devices.
    const auto& sources = deferred.sources;
    const bool idle = std::all_of(sources.begin(), sources.end(), [](const auto* is_idle) { return (*is_idle)(); });
    if (idle) frees.swap(deferred.until_idle);
  }
  for (const std::function<void()>& free : frees) free();
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

std::shared_lock<std::shared_mutex> lock_for_launch() { return std::shared_lock(deferred_frees().launching); }

// A child of fork() has no calls, and its locks may be held by threads of the parent.
void free_when_idle(std::function<void()> free) {
  DeferredFrees& deferred = deferred_frees();
  if (deferred.process != ::getpid()) return free();
  {
    const std::lock_guard lock(deferred.mutex);
    deferred.until_idle.push_back(std::move(free));
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
    Result<Board> own = Board::adopt(std::move(file).value(), board.ranks());
    if (own.ok()) leaving.board = std::move(own).value();
  }
  const std::lock_guard lock(deferred_frees().mutex);
  deferred_frees().leaving.push_back(std::move(leaving));
}

void run_deferred_frees() {
  free_left_memory();
  run_idle_frees();
}

}  // namespace tutti
