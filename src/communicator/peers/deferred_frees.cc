#include "src/communicator/peers/deferred_frees.h"

#include <algorithm>
#include <list>
#include <mutex>

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
  std::mutex mutex;
  std::list<Leaving> all;
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

}  // namespace

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
  deferred_frees().all.push_back(std::move(leaving));
}

void sweep_deferred_frees() {
  std::list<Leaving> done;  // Freed without the lock, because this may take long.
  const std::lock_guard lock(deferred_frees().mutex);
  auto& all = deferred_frees().all;
  for (auto leaving = all.begin(); leaving != all.end();) {
    const auto next = std::next(leaving);
    // Without a descriptor, the board cannot be watched.
    const bool known = leaving->board.segment().data() != nullptr;
    if (known && is_over(leaving->board, leaving->here, leaving->memory)) done.splice(done.end(), all, leaving);
    leaving = next;
  }
}

}  // namespace tutti
