#include "src/communicator/control/visit.h"

#include <sched.h>

#include <algorithm>

#include "src/base/atomic.h"

namespace tutti {
namespace {

// The fence orders what was done before, also to the failed word, before what is looked at next: with one on each side
// of a failure, not both can miss what the other has stored.
void show(BoardEntry& own, std::uint32_t visits) {
  store_release(&own.visits, visits);
  full_fence();
}

bool is_there(const BoardEntry& entry) {
  const auto shown = [](const std::uint32_t& word) { return load_acquire(&word) != 0; };
  return shown(entry.visits) || std::any_of(std::begin(entry.team_visits), std::end(entry.team_visits), shown);
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
    const BoardEntry& entry = board.entry(peer);
    while (is_there(entry) && !deadline.passed() && !mesh.is_dead(peer)) ::sched_yield();
  }
}

}  // namespace tutti
