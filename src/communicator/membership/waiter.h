// Waiting for a peer. A wait spins for a short time and then sleeps. Every wait checks for aborts, the timeout, dead
// peers, peers in another call, and ranks that wait for each other. If ranks share CPUs, a wait yields to the rank that
// it waits for. Between hosts, a wait progresses this rank's lanes.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/atomic.h"
#include "src/communicator/membership/control_plane.h"
#include "src/communicator/membership/cpu_sharing.h"
#include "src/communicator/membership/deadlock.h"
#include "src/communicator/membership/sleeper.h"
#include "src/executor/lane_operations.h"

namespace tutti {

// Counters and timestamps of one wait.
struct WaitState {
  std::uint32_t polls = 0;
  std::int64_t began_ns = 0;
  std::int64_t yielded_ns = 0;
  std::int64_t probed_ns = 0;
  std::int64_t checked_ns = 0;  // Time of the last check.
  bool saw_leave = false;
  bool saw_failure = false;
  bool saw_death = false;
  bool reported_call = false;  // Reported to other hosts.
  bool reported = false;       // Logged.
  bool watches_board = false;  // The wait may end when the peer changes its entry of the board.
};

// Only the thread that runs calls may use it.
class Waiter {
 public:
  explicit Waiter(ControlPlane& control);

  // Called when a call begins, since the thread may have moved to another CPU.
  void begin_call() const {
    if (cpus_.oversubscribed()) cpus_.show_cpu();
  }
  // Waits until the peer has made progress. For ranks of one host, whose call usually takes less than a microsecond.
  // Fails if the communicator has failed, or fails it if one of the checks finds a reason, such as the timeout of the
  // current call.
  Status await_brief(const Blocked& blocked);
  // Like await_brief(), for all calls. Fails for the same reasons.
  Status await(const Blocked& blocked);
  // Counts an unsuccessful poll for `peer`. May yield, sleep, and progress lanes. Some polls check as
  // await() does and fail for the same reasons; the other polls succeed. Between two calls, the caller must poll all
  // operations that it drives.
  Status wait_for(Rank peer, WaitState& wait_state);
  // Runs the interpreter of an operation that calls wait_for() as far as peers allow. After progress, the next wait
  // spins again before it sleeps.
  template <typename Interpreter>
  Progress advance(Interpreter& interpreter, WaitState& wait_state);

  // Returns whether the kernel has accepted all data for other hosts. A call ends only then, since no other thread
  // sends it.
  bool drained() const;
  Status drain();  // Waits until drained() holds. Fails like await().

 private:
  static constexpr std::uint32_t kPollsPerClock = 64;
  // Between close cores, a message arrives within this number of polls with one pause each. Later polls pause longer,
  // so that they do not repeatedly take the cache line from a writer on a distant core.
  static constexpr std::uint32_t kQuickPolls = 4;

  // Called every kPollsPerClock polls. Sleeps if the wait has spun long enough.
  [[gnu::noinline]] Status wait_longer(Rank peer, WaitState& wait_state);
  // Prepares to sleep, or sleeps if prepared. The caller polls before the next call.
  Status sleep(Rank peer, WaitState& wait_state);
  bool prefers_sleep() const;
  Status wait_between_hosts(Rank peer, WaitState& wait_state);
  Status sleep_between_hosts(Rank peer, WaitState& wait_state, std::int64_t now);
  std::int64_t yield();
  // Checks for all that can end or prolong the wait. Takes microseconds.
  Status check_for_failures(Rank peer, WaitState& wait_state);
  Status time_out(Rank peer, const WaitState& wait_state);
  void report_long_wait(Rank peer, std::int64_t waited_ms, WaitState& wait_state) const;
  void report_call(std::int64_t now, WaitState& wait_state);
  Status notice_failure(WaitState& wait_state) const;
  Status probe_peers(WaitState& wait_state);
  void note_progress();
  // Fails if a rank leaves while another rank still needs it.
  Status notice_leaving(Rank awaited, WaitState& wait_state);
  Status leaves(Rank leaver, Rank other, const std::string& call);

  Membership& membership_;
  const CurrentCall& current_;
  Notifications& notifications_;
  Failures& failures_;
  const CallMatching& matching_;
  CpuSharing cpus_;
  Sleeper sleeper_;
  bool yields_to_others_ = false;  // Other threads were ready on this CPU at the last yield().
  DeadlockDetection deadlocks_;
};

template <typename Interpreter>
Progress Waiter::advance(Interpreter& interpreter, WaitState& wait_state) {
  if (membership_.spans_hosts) membership_.mesh.advance();
  const Cursor before = interpreter.cursor();
  const Progress progress = interpreter.advance();
  if (!(interpreter.cursor() == before)) {
    wait_state = {};
    note_progress();
  }
  return progress;
}

inline Status Waiter::await_brief(const Blocked& blocked) {
  const Rank peer = blocked.operand->peer;
  WaitState wait_state;
  while (!blocked.over()) {
    if (cpus_.oversubscribed()) {
      TUTTI_CHECK_OK(wait_for(peer, wait_state));
      continue;
    }
    pause();
    if (++wait_state.polls <= kQuickPolls) continue;
    pause();
    pause();
    if (wait_state.polls % kPollsPerClock == 0) TUTTI_CHECK_OK(wait_longer(peer, wait_state));
  }
  if (wait_state.polls >= kPollsPerClock || cpus_.oversubscribed()) sleeper_.disarm();
  return {};
}

inline Status Waiter::await(const Blocked& blocked) {
  const Rank peer = blocked.operand->peer;
  const bool spans_hosts = membership_.spans_hosts;
  WaitState wait_state;
  while (!blocked.over()) {
    if (!cpus_.oversubscribed() && !spans_hosts && ++wait_state.polls % kPollsPerClock != 0) {
      pause();
      pause();  // Two pauses let the peer's store complete soonest.
      continue;
    }
    TUTTI_CHECK_OK(cpus_.oversubscribed() || spans_hosts ? wait_for(peer, wait_state) : wait_longer(peer, wait_state));
  }
  sleeper_.disarm();
  return {};
}

}  // namespace tutti
