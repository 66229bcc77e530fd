#include "src/communicator/neighbours/leavings.h"

#include <list>
#include <mutex>

#include "src/base/atomic.h"

namespace tutti {
namespace {

struct Leaving {
  std::shared_ptr<DeviceHome> home;
  Board board;
};

struct Leavings {
  std::mutex mutex;
  std::list<Leaving> all;
};

// Never destroyed: communicators may end after the program's statics.
Leavings& leavings() {
  static Leavings& of_process = *new Leavings;
  return of_process;
}

bool all_have_left(const Board& board) {
  for (Rank rank = 0; rank < board.ranks(); ++rank) {
    if (load_acquire(&board.entry(rank).left) == 0) return false;
  }
  return true;
}

// Nothing is kept for them any more. Of a failed communicator nobody knows who is still there. While another of its
// ranks holds the home, as one does that was lost, its teams may work there: the memory stays.
bool is_over(const Board& board, const std::shared_ptr<DeviceHome>& home) {
  if (all_have_left(board)) return true;
  if (!board.failed() || home.use_count() > 1) return false;
  home->set_inboxes_aside();
  return true;
}

}  // namespace

void keep_until_all_have_left(std::shared_ptr<DeviceHome> home, const Board& board) {
  if (is_over(board, home)) return;
  Leaving leaving{std::move(home), {}};
  Result<File> file = board.segment().duplicate();
  if (file.ok()) {
    Result<Board> own = Board::adopt(std::move(file).value(), board.ranks());
    if (own.ok()) leaving.board = std::move(own).value();
  }
  const std::lock_guard lock(leavings().mutex);
  leavings().all.push_back(std::move(leaving));
}

void sweep_leavings() {
  std::list<Leaving> done;  // Freed without the lock: that may take a while.
  const std::lock_guard lock(leavings().mutex);
  auto& all = leavings().all;
  for (auto leaving = all.begin(); leaving != all.end();) {
    const auto next = std::next(leaving);
    const bool known = leaving->board.segment().data() != nullptr;  // Else there was no descriptor to watch by.
    if (known && is_over(leaving->board, leaving->home)) done.splice(done.end(), all, leaving);
    leaving = next;
  }
}

}  // namespace tutti
