#include "src/communicator/control/wait_record.h"

#include <atomic>

#include "src/base/atomic.h"

namespace tutti {

void show_wait(WaitRecord& own, const Wait& wait) {
  if (own.began_ns != wait.began_ns || own.peer != wait.peer) {
    store_relaxed(&own.version, own.version + 1);
    std::atomic_thread_fence(std::memory_order_release);
    store_relaxed(&own.began_ns, wait.began_ns);
    store_relaxed(&own.sequence, wait.sequence);
    store_relaxed(&own.peer, std::uint32_t{wait.peer});
    store_relaxed(&own.call, wait.call);
    store_release(&own.version, own.version + 1);
  }
  store_release(&own.polls, own.polls + 1);
  full_fence();  // The next poll must not read memory before `polls` is visible.
}

std::optional<Wait> read_wait(const WaitRecord& record) {
  const std::uint64_t version = load_acquire(&record.version);
  Wait wait;
  wait.began_ns = load_relaxed(&record.began_ns);
  wait.sequence = load_relaxed(&record.sequence);
  wait.peer = static_cast<Rank>(load_relaxed(&record.peer));
  wait.call = load_relaxed(&record.call);
  wait.polls = load_relaxed(&record.polls);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (version % 2 != 0 || load_relaxed(&record.version) != version || wait.began_ns == 0) return std::nullopt;
  return wait;
}

}  // namespace tutti
