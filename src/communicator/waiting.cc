// Waiting: every wait watches the abort word, the deadline, the peers' lives, and whether the peers are in the same
// call. Where ranks share CPUs, it knows on which the awaited rank is.
#include <sched.h>

#include <string>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/host_communicator.h"

namespace tutti {
namespace {

constexpr std::uint32_t kPollsPerLook = 1024;
constexpr std::uint32_t kPollsBeforeYield = 4;
constexpr std::int64_t kYieldNs = 200'000;    // Between looks around while yielding.
constexpr std::int64_t kProbeNs = 5'000'000;  // Between looks at the peers' sockets.

}  // namespace

void HostCommunicator::show_cpu() {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
  std::uint32_t& shown = board_.entry(rank_).cpu;
  if (load_relaxed(&shown) != cpu) store_relaxed(&shown, cpu);
}

Status HostCommunicator::wait_for(Rank peer, Patience& patience) {
  ++patience.polls;
  const bool yields = crowded_ && (patience.polls % kPollsBeforeYield == 0 || shares_cpu_with(peer));
  if (!yields) {
    pause();
    return patience.polls % kPollsPerLook == 0 ? look_around(peer, patience) : Status();
  }
  ::sched_yield();  // May take as long as all that others of this CPU do.
  const std::int64_t now = now_ns();
  if (patience.yielded_ns == 0) patience.yielded_ns = now;
  if (now - patience.yielded_ns < kYieldNs) return {};
  patience.yielded_ns = 0;
  return look_around(peer, patience);
}

Status HostCommunicator::look_around(Rank peer, Patience& patience) {
  if (board_.failed()) return board_.failure(rank_);
  const std::int64_t now = now_ns();
  if (patience.began_ns == 0) patience.began_ns = patience.probed_ns = now;
  if (!crowd_known_) find_crowd();
  show_cpu();  // It may have changed while waiting.
  if (!crowded_ && shares_cpu_with(peer)) ::sched_yield();
  if (timeout_ms_ > 0 && (now - patience.began_ns) / 1'000'000 >= timeout_ms_) {
    return fail(timeout_error(current_call() + " waited " + std::to_string(timeout_ms_) + " ms for rank " +
                              std::to_string(peer)));
  }
  TUTTI_CHECK_OK(compare_calls());
  if (now - patience.probed_ns < kProbeNs) return {};
  patience.probed_ns = now;
  return probe_peers();
}

bool HostCommunicator::shares_cpu_with(Rank peer) const {
  return peer != rank_ && load_relaxed(&board_.entry(peer).cpu) == load_relaxed(&board_.entry(rank_).cpu);
}

// Ranks may be bound to CPUs, each to others: what counts is how many they have together.
void HostCommunicator::find_crowd() {
  const auto cpus = board_.cpus();
  crowd_known_ = cpus.has_value();
  crowded_ = crowd_known_ && ranks_ > *cpus;
}

Status HostCommunicator::probe_peers() {
  const auto dead = mesh_.find_dead();
  if (!dead) return {};
  return fail(remote_error("rank " + std::to_string(*dead) + " died during " + current_call()));
}

}  // namespace tutti
