// Waiting for a peer. Every wait checks for aborts, the timeout, dead peers, peers in another call, and ranks that wait
// for each other. If ranks share CPUs, a wait yields to the rank that it waits for.
#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/host/host_communicator.h"

namespace tutti {
namespace {

constexpr std::uint32_t kPollsBeforeYield = 16;  // Polls between yields if the peer runs on another CPU.
constexpr std::int64_t kYieldNs = 200'000;       // Minimum time between checks while yielding.
constexpr std::int64_t kProbeNs = 5'000'000;     // Minimum time between checks of the peers' sockets.
constexpr Rank kMaxListed = 16;
// Waiting time after which a rank warns: kLongMs, or kLongFinalizeMs in finalize. If the time limit divided by
// kLongOfLimit is shorter, it applies instead. Collectives may wait long for a slow peer; finalize waits only for peers
// to finalize.
constexpr std::int64_t kLongMs = 30'000;
constexpr std::int64_t kLongFinalizeMs = 5'000;
constexpr std::int64_t kMinLongMs = 10;
constexpr std::int64_t kLongOfLimit = 4;

}  // namespace

void HostCommunicator::show_cpu() {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
  std::uint32_t& shown = membership_.board.entry(membership_.rank).cpu;
  if (load_relaxed(&shown) != cpu) store_relaxed(&shown, cpu);
}

Status HostCommunicator::wait_for(Rank peer, WaitState& wait_state) {
  ++wait_state.polls;
  if (membership_.spans_hosts) return wait_remote(peer, wait_state);
  const bool yields = oversubscribed_ && (wait_state.polls % kPollsBeforeYield == 0 || shares_cpu_with(peer) ||
                                          (wait_state.polls == 1 && one_here_is_behind()));
  if (!yields) {
    pause();
    return wait_state.polls % kPollsPerLook == 0 ? look_around(peer, wait_state) : Status();
  }
  ::sched_yield();  // May take as long as other threads use this CPU.
  const std::int64_t now = now_ns();
  if (wait_state.yielded_ns == 0) wait_state.yielded_ns = now;
  if (now - wait_state.yielded_ns < kYieldNs) return {};
  wait_state.yielded_ns = 0;
  return look_around(peer, wait_state);
}

// Returns whether a rank that shares this rank's CPU has not begun this call. Other ranks will wait for it too.
bool HostCommunicator::one_here_is_behind() const {
  if (control_.current.record() == nullptr) return false;
  for (Rank rank = 0; rank < membership_.ranks; ++rank) {
    if (rank != membership_.rank && shares_cpu_with(rank) &&
        membership_.board.last(rank) < control_.current.record()->sequence)
      return true;
  }
  return false;
}

Status HostCommunicator::look_around(Rank peer, WaitState& wait_state) {
  const NoCancellation until_return;
  if (membership_.spans_hosts) control_.notifications.poll();
  if (membership_.board.failed()) return notice_failure(wait_state);
  const std::int64_t now = now_ns();
  if (wait_state.began_ns == 0) wait_state.began_ns = wait_state.probed_ns = now;
  if (!oversubscription_known_) find_oversubscription();
  show_cpu();  // The CPU may have changed while waiting.
  if (!oversubscribed_ && (!oversubscription_known_ || shares_cpu_with(peer))) ::sched_yield();
  const std::int64_t waited_ms = (now - wait_state.began_ns) / 1'000'000;
  if (control_.current.timeout_ms() > 0 && waited_ms >= control_.current.timeout_ms()) {
    return control_.failures.fail(
        timeout_error(control_.current.describe() + ": rank " + std::to_string(membership_.rank) + " waited " +
                      describe_ms(control_.current.timeout_ms()) + " for " + whom(peer) + hint()));
  }
  report_long_wait(peer, waited_ms, wait_state);
  if (membership_.spans_hosts) report_remote_wait(now, wait_state);
  TUTTI_CHECK_OK(control_.matching.compare());
  show_wait(peer, wait_state);
  TUTTI_CHECK_OK(notice_deadlock(wait_state));
  TUTTI_CHECK_OK(notice_leaving(peer, wait_state));
  if (now - wait_state.probed_ns < kProbeNs) return {};
  wait_state.probed_ns = now;
  return probe_peers(wait_state);
}

// Warns once per wait. A stopped, late or stuck rank sends nothing, and the time limit may be far in the future.
void HostCommunicator::report_long_wait(Rank peer, std::int64_t waited_ms, WaitState& wait_state) const {
  const std::int64_t max_ms = finalizes() ? kLongFinalizeMs : kLongMs;
  const std::int64_t long_ms = control_.current.timeout_ms() > 0
                                   ? std::clamp(control_.current.timeout_ms() / kLongOfLimit, kMinLongMs, max_ms)
                                   : max_ms;
  if (wait_state.reported || waited_ms < long_ms) return;
  wait_state.reported = true;
  const std::string limit = control_.current.timeout_ms() > 0
                                ? "gives up after " + describe_ms(control_.current.timeout_ms())
                                : "no time limit";
  log(LogLevel::warn, "%s: rank %u has waited %s for %s (%s)%s", control_.current.describe().c_str(), membership_.rank,
      describe_ms(waited_ms).c_str(), whom(peer).c_str(), limit.c_str(), hint().c_str());
}

bool HostCommunicator::finalizes() const { return control_.current.finalizes(); }

// Example: "rank 1, which has not called it".
std::string HostCommunicator::whom(Rank peer) const {
  return "rank " + std::to_string(peer) + (finalizes() ? not_leaving(peer) : absent(peer));
}

// Example: ": if one thread ..."; empty if there is no hint.
std::string HostCommunicator::hint() const {
  if (!finalizes()) return not_receiving();
  if (membership_.one_process) return ": a thread that drives several ranks must finalize or destroy them in one group";
  return ": ranks that share several communicators must destroy them in the same order, or in one group";
}

// Data that peers sent before the failure has arrived by now. A call that needs only this data completes normally.
Status HostCommunicator::notice_failure(WaitState& wait_state) {
  if (std::exchange(wait_state.saw_failure, true)) return membership_.board.failure(membership_.rank);
  return {};
}

// Messages are not on the board, so the peer's call is unknown. A send that waits long usually waits for a peer that
// sends too.
std::string HostCommunicator::not_receiving() const {
  if (control_.current.message() == nullptr || control_.current.message()->kind != Kind::send) return "";
  const std::string peer = "rank " + std::to_string(control_.current.message()->root);
  return ": if " + peer + " is in a send to rank " + std::to_string(membership_.rank) +
         " meanwhile, neither can go on; put the sends and receives of an exchange into a group (tutti_group_start)";
}

// Lists the ranks that have not called the collective. This rank may wait for another rank than the missing ones.
std::string HostCommunicator::absent(Rank awaited) const {
  if (control_.current.record() == nullptr) return "";
  std::string list;
  Rank count = 0;
  Rank first = membership_.ranks;
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (membership_.mesh.is_remote(peer) || membership_.board.last(peer) >= control_.current.record()->sequence)
      continue;
    first = std::min(first, peer);
    if (++count > kMaxListed) continue;
    list += (count == 1 ? "" : ", ") + std::to_string(peer);
  }
  if (count == 0) return never_received();
  if (count == 1 && first == awaited) return ", which has not called it" + never_received();
  if (count == 1) return "; rank " + list + " has not called it" + never_received();
  if (count > kMaxListed) list += " and " + std::to_string(count - kMaxListed) + " more";
  return "; ranks " + list + " have not called it" + never_received();
}

// Describes the last collective of a peer that has not finalized. The peer may be finalizing another communicator, in
// which other ranks wait for this one. Messages are not on the board.
std::string HostCommunicator::not_leaving(Rank peer) const {
  const std::uint64_t last = membership_.board.last(peer);
  if (last == 0) return ", which has made no collective call here";
  const auto record = membership_.board.call(peer, last);
  return ", whose last collective call here was #" + std::to_string(last) + (record ? ", " + describe(*record) : "");
}

// A leaving rank has completed all its calls, while slower ranks may still be in the last one.
Status HostCommunicator::notice_leaving(Rank awaited, WaitState& wait_state) {
  const auto has_left = [this](Rank peer) { return load_acquire(&membership_.board.entry(peer).left) != 0; };
  if (control_.current.record() == nullptr && control_.current.message() != nullptr) {
    if (!has_left(awaited)) return {};
    if (wait_state.saw_leave) return leaves(awaited, membership_.rank, control_.current.describe());
    // Data that the peer sent before it left has arrived; the next check processes it.
    wait_state.saw_leave = true;
    return {};
  }
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (control_.current.record() != nullptr) {
      if (has_left(peer) && membership_.board.last(peer) < control_.current.record()->sequence)
        return leaves(peer, membership_.rank, control_.current.describe());
    } else if (const std::uint64_t last = membership_.board.last(peer); last > control_.current.sequence()) {
      const auto theirs = membership_.board.call(peer, last);
      const std::string call = theirs ? describe(*theirs) : std::string("collective");
      return leaves(membership_.rank, peer, call + " #" + std::to_string(last));
    }
  }
  return {};
}

Status HostCommunicator::leaves(Rank leaver, Rank other, const std::string& call) {
  return control_.failures.fail(invalid_usage("rank " + std::to_string(leaver) +
                                              " finalizes or destroys the communicator, while rank " +
                                              std::to_string(other) + " is in " + call));
}

bool HostCommunicator::shares_cpu_with(Rank peer) const {
  return peer != membership_.rank && load_relaxed(&membership_.board.entry(peer).cpu) ==
                                         load_relaxed(&membership_.board.entry(membership_.rank).cpu);
}

// Ranks may be bound to different CPUs, so the number of CPUs of all ranks together counts. A rank shows its CPUs at
// its first call or wait. The thread that creates a communicator may not be the one that uses it.
void HostCommunicator::find_oversubscription() {
  membership_.board.show_cpus(membership_.rank);
  const auto cpus = membership_.board.cpus();
  oversubscription_known_ = cpus.has_value();
  oversubscribed_ = oversubscription_known_ && membership_.board.ranks_here() > *cpus;
}

Status HostCommunicator::probe_peers(WaitState& wait_state) {
  const auto dead = membership_.mesh.find_dead();
  if (!dead) return {};
  // Messages that the peer sent before may complete the call, so they are processed once more.
  if (membership_.spans_hosts && !std::exchange(wait_state.saw_death, true)) return {};
  if (membership_.spans_hosts) control_.notifications.poll();  // The peer may have reported why it ends.
  if (membership_.board.failed()) return membership_.board.failure(membership_.rank);
  return control_.failures.fail(membership_.mesh.death(*dead, "during " + control_.current.describe()));
}

}  // namespace tutti
