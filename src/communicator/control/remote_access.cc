#include "src/communicator/control/remote_access.h"

#include <sched.h>

#include "src/base/atomic.h"

namespace tutti {
namespace {

// The fence orders earlier stores, including the one to the failed word, before later loads. With a fence on each side
// of a failure, at least one side sees the store of the other.
void show(BoardEntry& own, std::uint32_t remote_accesses) {
  store_release(&own.remote_accesses, remote_accesses);
  full_fence();
}

bool is_there(const Board& board, Rank peer) {
  const AccessWords* thread_blocks = board.access_words(peer);  // Null: on another host.
  return load_acquire(&board.entry(peer).remote_accesses) != 0 || (thread_blocks != nullptr && thread_blocks->any());
}

}  // namespace

// A rank that accesses remote memory publishes that first and then checks for failures. A rank that fails publishes
// the failure first and then checks for remote access. At least one of them sees the other.
Status RemoteAccess::check() const {
  show(board_.entry(self_), 1);
  return board_.failed() ? board_.failure(self_) : Status();
}

RemoteAccess::~RemoteAccess() { show(board_.entry(self_), 0); }

void wait_for_remote_access(const Board& board, Mesh& mesh, Rank self, const Deadline& deadline) {
  board.stop_thread_blocks();
  show(board.entry(self), 0);
  for (Rank peer = 0; peer < board.ranks(); ++peer)
    while (is_there(board, peer) && !deadline.passed() && !mesh.is_dead(peer)) ::sched_yield();
}

}  // namespace tutti
