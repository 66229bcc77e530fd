#include "src/communicator/membership/waiter.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/clock.h"
#include "src/base/duration.h"
#include "src/base/log.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/call/pace.h"
#include "src/communicator/membership/wait_description.h"

namespace tutti {
namespace {

constexpr std::uint32_t kPollsBeforeYield = 16;  // Polls between yields if the peer runs on another CPU.
constexpr std::int64_t kYieldNs = 200'000;       // Minimum time between checks while yielding.
// A yield that takes longer went to a thread that does not wait, for a time slice of the scheduler. Then waits sleep:
// the kernel resumes a sleeping thread sooner than one that yielded. Ranks that copy a chunk yield again sooner.
constexpr std::int64_t kLongYieldNs = 1'500'000;
// Time that a wait spins before it sleeps: about the time that a sleeping thread takes to wake up.
constexpr std::int64_t kSpinNs = 50'000;
// Like kSpinNs, if other threads of the process need the CPU: longer than a peer takes for a chunk of a message.
constexpr std::int64_t kShortSpinNs = 10'000;
constexpr std::int64_t kProbeNs = 5'000'000;  // Minimum time between checks of the peers' sockets.
// Waiting time after which a rank warns: kLongMs, or kLongFinalizeMs in finalize. If the time limit divided by
// kLongOfLimit is shorter, it applies instead. Collectives may wait long for a slow peer; finalize waits only for peers
// to finalize.
constexpr std::int64_t kLongMs = 30'000;
constexpr std::int64_t kLongFinalizeMs = 5'000;
constexpr std::int64_t kMinLongMs = 10;
constexpr std::int64_t kLongOfLimit = 4;
// Time after a timeout in which a waiting rank must poll: the time limit divided by kFollowOfLimit, within these
// bounds.
constexpr std::int64_t kFollowOfLimit = 4, kMinFollowMs = 100, kMaxFollowMs = 1'000;

// ---- Between hosts ----

// Like kSpinNs, for a rank that yields its CPU to other threads meanwhile.
constexpr std::int64_t kOfferNs = 1'000'000;
// A yield takes less time if no other thread is ready to run on the CPU.
constexpr std::int64_t kAloneNs = 2'000;
constexpr std::uint32_t kPollsPerAdvance = 16;  // Polls of the peer between polls of all connections.
// A sleep takes at most 1 / kSleepsPerIdle of the time since data moved, within these bounds.
constexpr std::int64_t kSleepsPerIdle = 8, kMinPollMs = 1, kMaxPollMs = 10;
// Duration of a wait after which a rank reports its call to other hosts.
constexpr std::int64_t kReportNs = 200'000'000;

}  // namespace

Waiter::Waiter(ControlPlane& control)
    : membership_(control.membership),
      current_(control.current),
      notifications_(control.notifications),
      failures_(control.failures),
      matching_(control.matching),
      cpus_(control.membership),
      sleeper_(control.membership),
      deadlocks_(control) {}

void Waiter::note_progress() {
  thread_pace.idle_since_ns = 0;
  sleeper_.disarm();
}

// ---- Within a host ----

Status Waiter::wait_for(Rank peer, WaitState& wait_state) {
  if (++wait_state.polls == 1) {
    thread_pace.idle_since_ns = 0;
    if (thread_pace.cpu_is_contended()) thread_pace.end_contention(now_ns());
  }
  if (membership_.spans_hosts) return wait_between_hosts(peer, wait_state);
  // Unless another communicator of this thread has made progress.
  if (sleeper_.armed() && thread_pace.idle_since_ns != 0) return sleep(peer, wait_state);
  // Other ranks will wait for a rank that is behind, too.
  const auto one_is_behind = [this] {
    return current_.record() != nullptr && cpus_.one_is_behind(current_.record()->sequence);
  };
  const bool yields = cpus_.oversubscribed() && !prefers_sleep() &&
                      (wait_state.polls % kPollsBeforeYield == 0 || cpus_.shared_with(peer) ||
                       (wait_state.polls == 1 && one_is_behind()));
  if (!yields) {
    pause();
    return wait_state.polls % kPollsPerClock == 0 ? wait_longer(peer, wait_state) : Status();
  }
  const std::int64_t now = yield();
  if (wait_state.yielded_ns == 0) wait_state.yielded_ns = now;
  if (now - wait_state.yielded_ns < kYieldNs) return {};
  wait_state.yielded_ns = 0;
  if (thread_pace.idle_since_ns == 0) thread_pace.idle_since_ns = now - kYieldNs;
  if (membership_.options.wait == WaitMode::spin) return check_for_failures(peer, wait_state);
  return sleep(peer, wait_state);
}

// The first call of a wait begins its time.
Status Waiter::wait_longer(Rank peer, WaitState& wait_state) {
  const std::int64_t now = now_ns();
  std::int64_t& idle_since = thread_pace.idle_since_ns;
  if (wait_state.polls == kPollsPerClock || idle_since == 0) idle_since = now;
  const WaitMode mode = membership_.options.wait;
  if (mode == WaitMode::sleep) return sleep(peer, wait_state);
  thread_pace.end_contention(now);
  const bool shares = prefers_sleep() || (mode == WaitMode::automatic && thread_pace.others_compute(now));
  if (now - idle_since < (shares ? kShortSpinNs : kSpinNs)) return {};
  if (mode == WaitMode::spin)
    return now - wait_state.checked_ns < kSpinNs ? Status() : check_for_failures(peer, wait_state);
  if (!shares && !sleeper_.armed()) thread_pace.look_for_others(now);
  return sleep(peer, wait_state);
}

// While a stream waits, other threads of the caller compute. The thread does not yield to them but sleeps.
bool Waiter::prefers_sleep() const {
  const WaitMode mode = membership_.options.wait;
  return mode == WaitMode::sleep ||
         (mode == WaitMode::automatic && (thread_pace.in_stream || thread_pace.cpu_is_contended()));
}

// Returns the time after the yield, which takes as long as other threads use this CPU.
std::int64_t Waiter::yield() {
  const std::int64_t before = now_ns();
  ::sched_yield();
  const std::int64_t now = now_ns();
  if (now - before > kLongYieldNs) thread_pace.note_contention(now);
  yields_to_others_ = now - before > kAloneNs;
  return now;
}

Status Waiter::sleep(Rank peer, WaitState& wait_state) {
  if (!sleeper_.armed_for(wait_state.watches_board)) {
    sleeper_.arm(wait_state.watches_board);
    return {};
  }
  TUTTI_CHECK_OK(check_for_failures(peer, wait_state));
  // A reason to fail was found, and the caller polls for the last time.
  if (wait_state.saw_failure || wait_state.saw_leave || wait_state.saw_death) return {};
  sleeper_.sleep(wait_state.checked_ns - thread_pace.idle_since_ns);
  return {};
}

// ---- Between hosts ----

// Spins for the usual time of an answer, then sleeps until a frame of `peer` arrives. First sends everything that the
// call has posted, to all peers. Progresses the connections to other peers at intervals.
Status Waiter::wait_between_hosts(Rank peer, WaitState& wait_state) {
  Mesh& mesh = membership_.mesh;
  if (wait_state.polls == 1) mesh.push();
  if (yields_to_others_ && !prefers_sleep()) yield();
  if (wait_state.polls % kPollsPerAdvance != 0) {
    if (mesh.is_remote(peer)) mesh.connection(peer).advance();
    return {};
  }
  const bool moved = mesh.advance();
  const std::int64_t now = now_ns();
  if (moved || thread_pace.idle_since_ns == 0) thread_pace.idle_since_ns = now;
  if (wait_state.yielded_ns == 0) wait_state.yielded_ns = now;
  if (!prefers_sleep() && now - wait_state.yielded_ns < (yields_to_others_ ? kOfferNs : kSpinNs)) {
    yield();  // To other threads that are ready on this CPU, whether of this job or not. An answer may depend on them.
    return {};
  }
  if (prefers_sleep()) yields_to_others_ = false;
  if (membership_.options.wait == WaitMode::spin) return check_for_failures(peer, wait_state);
  return sleep_between_hosts(peer, wait_state, now);
}

// Data of other hosts than the peer's wait until the sleep ends, so sleeps are short until data stop moving.
Status Waiter::sleep_between_hosts(Rank peer, WaitState& wait_state, std::int64_t now) {
  if (!membership_.mesh.is_remote(peer)) return sleep(peer, wait_state);
  const std::int64_t idle_ms = (now - thread_pace.idle_since_ns) / 1'000'000;
  membership_.mesh.wait(peer, static_cast<int>(std::clamp(idle_ms / kSleepsPerIdle, kMinPollMs, kMaxPollMs)));
  return check_for_failures(peer, wait_state);
}

Status Waiter::check_for_failures(Rank peer, WaitState& wait_state) {
  const NoCancellation until_return;
  failures_.check_abort();
  if (membership_.spans_hosts) notifications_.poll();
  if (membership_.board.failed()) return notice_failure(wait_state);
  const std::int64_t now = wait_state.checked_ns = now_ns();
  if (wait_state.began_ns == 0) wait_state.began_ns = wait_state.probed_ns = now;
  if (!cpus_.counted()) cpus_.count_cpus();
  cpus_.show_cpu();  // The CPU may have changed while waiting.
  if (!cpus_.oversubscribed() && (!cpus_.counted() || cpus_.shared_with(peer))) ::sched_yield();
  const std::int64_t waited_ms = (now - wait_state.began_ns) / 1'000'000;
  const std::int64_t timeout_ms = current_.timeout_ms();
  if (timeout_ms > 0 && waited_ms >= timeout_ms) {
    return time_out(peer, wait_state);
  }
  report_long_wait(peer, waited_ms, wait_state);
  if (membership_.spans_hosts) report_call(now, wait_state);
  TUTTI_CHECK_OK(matching_.compare());
  deadlocks_.show_wait(peer, wait_state.began_ns);
  TUTTI_CHECK_OK(deadlocks_.check(wait_state.began_ns));
  TUTTI_CHECK_OK(notice_leaving(peer, wait_state));
  if (now - wait_state.probed_ns < kProbeNs) return {};
  wait_state.probed_ns = now;
  return probe_peers(wait_state);
}

// Names the rank that holds up the others. They may be waiting for this rank's peer, and time out at the same time.
Status Waiter::time_out(Rank peer, const WaitState& wait_state) {
  const std::int64_t within_ms = std::clamp(current_.timeout_ms() / kFollowOfLimit, kMinFollowMs, kMaxFollowMs);
  if (membership_.spans_hosts) notifications_.request_waits();
  const auto chain = follow_waits(membership_, peer, within_ms, [&] {
    if (membership_.spans_hosts) notifications_.poll();
    deadlocks_.show_wait(peer, wait_state.began_ns);
  });
  const Rank self = membership_.rank;
  const Rank awaited = end_of(chain, self, peer);
  return failures_.fail(
      timeout_error(current_.describe() + ": rank " + std::to_string(self) + " waited " +
                    describe_ms(current_.timeout_ms()) + " for " + describe_awaited(membership_, current_, awaited) +
                    describe(chain, self, peer) + membership_.board.describe_rejection(awaited) +
                    (chain.empty() || !current_.finalizes() ? wait_hint(membership_, current_) : "")));
}

// Warns once per wait. A stopped, late or stuck rank sends nothing, and the time limit may be far in the future.
void Waiter::report_long_wait(Rank peer, std::int64_t waited_ms, WaitState& wait_state) const {
  const std::int64_t timeout_ms = current_.timeout_ms();
  const std::int64_t max_ms = current_.finalizes() ? kLongFinalizeMs : kLongMs;
  const std::int64_t long_ms = timeout_ms > 0 ? std::clamp(timeout_ms / kLongOfLimit, kMinLongMs, max_ms) : max_ms;
  if (wait_state.reported || waited_ms < long_ms) return;
  wait_state.reported = true;
  const std::string limit = timeout_ms > 0 ? "gives up after " + describe_ms(timeout_ms) : "no time limit";
  log(LogLevel::warn, "%s: rank %u has waited %s for %s (%s)%s%s", current_.describe().c_str(), membership_.rank,
      describe_ms(waited_ms).c_str(), describe_awaited(membership_, current_, peer).c_str(), limit.c_str(),
      membership_.board.describe_rejection(peer).c_str(), wait_hint(membership_, current_).c_str());
}

void Waiter::report_call(std::int64_t now, WaitState& wait_state) {
  if (wait_state.reported_call || now - wait_state.began_ns < kReportNs) return;
  wait_state.reported_call = true;
  notifications_.report_calls(NotificationKind::call);
}

// Data that peers sent before the failure has arrived by now. A call that needs only this data completes normally.
Status Waiter::notice_failure(WaitState& wait_state) const {
  if (std::exchange(wait_state.saw_failure, true)) return membership_.board.failure(membership_.rank);
  return {};
}

// A leaving rank has completed all its calls, while slower ranks may still be in the last one.
Status Waiter::notice_leaving(Rank awaited, WaitState& wait_state) {
  const Board& board = membership_.board;
  const auto has_left = [&](Rank peer) { return load_acquire(&board.entry(peer).left) != 0; };
  const CallRecord* const record = current_.record();
  if (record == nullptr && current_.message() != nullptr) {
    if (!has_left(awaited)) return {};
    if (wait_state.saw_leave) return leaves(awaited, membership_.rank, current_.describe());
    // Data that the peer sent before it left has arrived; the next check processes it.
    wait_state.saw_leave = true;
    return {};
  }
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (record != nullptr) {
      if (has_left(peer) && board.last(peer) < record->sequence)
        return leaves(peer, membership_.rank, current_.describe());
    } else if (const std::uint64_t last = board.last(peer); last > current_.sequence()) {
      const auto theirs = board.call(peer, last);
      const std::string call = theirs ? describe(*theirs) : std::string("collective");
      return leaves(membership_.rank, peer, call + " #" + std::to_string(last));
    }
  }
  return {};
}

Status Waiter::leaves(Rank leaver, Rank other, const std::string& call) {
  return failures_.fail(invalid_usage("rank " + std::to_string(leaver) +
                                      " finalizes or destroys the communicator, while rank " + std::to_string(other) +
                                      " is in " + call + membership_.board.describe_rejection(leaver)));
}

Status Waiter::probe_peers(WaitState& wait_state) {
  const auto dead = membership_.mesh.find_dead();
  if (!dead) return {};
  // Messages that the peer sent before may complete the call, so they are processed once more.
  if (membership_.spans_hosts && !std::exchange(wait_state.saw_death, true)) return {};
  if (membership_.spans_hosts) notifications_.poll();  // The peer may have reported why it ends.
  if (membership_.board.failed()) return membership_.board.failure(membership_.rank);
  return failures_.fail(failures_.death(*dead, "during " + current_.describe()));
}

bool Waiter::drained() const {
  if (!membership_.spans_hosts) return true;
  const Mesh& mesh = membership_.mesh;
  for (const Rank peer : mesh.remote_ranks()) {
    if (!mesh.connection(peer).drained(mesh.context(peer))) return false;
  }
  return true;
}

Status Waiter::drain() {
  const Mesh& mesh = membership_.mesh;
  for (const Rank peer : mesh.remote_ranks()) {
    WaitState wait_state;
    while (!mesh.connection(peer).drained(mesh.context(peer))) TUTTI_CHECK_OK(wait_for(peer, wait_state));
  }
  return {};
}

}  // namespace tutti
