#include "src/communicator/visit.h"

#include <sched.h>

#include <atomic>

#include "src/base/atomic.h"

namespace tutti {
namespace {

// The fence orders what was done before, also to the failed word, before what is looked at next: with one on each side
// of a failure, not both can miss what the other has stored.
void show(BoardEntry& own, std::uint32_t visits) {
  store_release(&own.visits, visits);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

// Who visits shows that and then looks for failures; who fails shows that and then looks for visitors. One sees the
// other.
Status Visit::check() const {
  show(board_.entry(self_), 1);
  return board_.failed() ? board_.failure(self_) : Status();
}

Visit::~Visit() { show(board_.entry(self_), 0); }

void outwait_visitors(const Board& board, Mesh& mesh, Rank self, const Deadline& deadline) {
  show(board.entry(self), 0);
  for (Rank peer = 0; peer < board.ranks(); ++peer) {
    const std::uint32_t& visits = board.entry(peer).visits;
    while (load_acquire(&visits) != 0 && !deadline.passed() && !mesh.is_dead(peer)) ::sched_yield();
  }
}

}  // namespace tutti
