#include "src/communicator/visit.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/atomic.h"
#include "src/base/clock.h"

namespace tutti {
namespace {

constexpr std::int64_t kMostMs = 1000;

// What a rank shows while it visits: this thread drives it. One thread may drive several, none of which goes on while
// it waits.
std::uint32_t this_thread() {
  static thread_local const auto id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return id;
}

// Also orders what was done in the memory before what is looked at next.
void show(BoardEntry& own, std::uint32_t visitor) {
  AtomicRef<std::uint32_t>(own.visitor).exchange(visitor, std::memory_order_seq_cst);
}

}  // namespace

Visit::Visit(const Board& board, Mesh& mesh, Rank self) : board_(board), mesh_(mesh), self_(self) {}

// Who visits shows that and then looks for failures; who fails shows that and then looks for visitors. One sees the
// other.
Status Visit::check() const {
  show(board_.entry(self_), this_thread());
  return board_.failed() ? board_.failure(self_) : Status();
}

Visit::~Visit() {
  show(board_.entry(self_), 0);
  if (!board_.failed()) return;
  const Deadline deadline = Deadline::after_ms(kMostMs);
  for (Rank peer = 0; peer < board_.ranks(); ++peer) {
    while (stays(peer) && !deadline.passed() && !mesh_.is_dead(peer)) ::sched_yield();
  }
}

bool Visit::stays(Rank peer) const {
  const std::uint32_t visitor = load_acquire(&board_.entry(peer).visitor);
  return visitor != 0 && visitor != this_thread();
}

}  // namespace tutti
