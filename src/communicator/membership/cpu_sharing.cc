#include "src/communicator/membership/cpu_sharing.h"

#include <sched.h>

#include "src/base/atomic.h"

namespace tutti {

void CpuSharing::show_cpu() const {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
  std::uint32_t& shown = membership_.board.entry(membership_.rank).cpu;
  if (load_relaxed(&shown) != cpu) store_relaxed(&shown, cpu);
}

bool CpuSharing::shared_with(Rank peer) const {
  const auto cpu_of = [this](Rank rank) { return load_relaxed(&membership_.board.entry(rank).cpu); };
  return peer != membership_.rank && cpu_of(peer) == cpu_of(membership_.rank);
}

bool CpuSharing::one_is_behind(std::uint64_t sequence) const {
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (shared_with(peer) && membership_.board.last(peer) < sequence) return true;
  }
  return false;
}

// Ranks may be bound to different CPUs, so the number of CPUs of all ranks together counts. A rank shows its CPUs at
// its first call or wait. The thread that creates a communicator may not be the one that uses it.
void CpuSharing::count_cpus() {
  const Board& board = membership_.board;
  board.show_cpus(membership_.rank);
  const auto cpus = board.cpus();
  counted_ = cpus.has_value();
  oversubscribed_ = counted_ && board.ranks_here() > *cpus;
}

}  // namespace tutti
