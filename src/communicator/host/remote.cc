// Waits for ranks of other hosts. This rank progresses its lanes to them itself while it waits.
#include <string>

#include "src/base/clock.h"
#include "src/communicator/host/host_communicator.h"

namespace tutti {
namespace {

// Time that a wait spins before it sleeps between messages.
constexpr std::int64_t kSpinNs = 50'000;
// Duration of a wait after which a rank reports its call to other hosts.
constexpr std::int64_t kReportNs = 200'000'000;
constexpr std::uint32_t kPollsPerClock = 16;
// Like kSpinNs, for a rank that yields its CPU to other threads meanwhile.
constexpr std::int64_t kOfferNs = 1'000'000;
// A yield takes less time if no other thread is ready to run on the CPU.
constexpr std::int64_t kAloneNs = 2'000;

}  // namespace

// Returns the ranks of other hosts that have not reported this call. Ranks report their calls when they wait long.
std::string HostCommunicator::never_received() const {
  if (control_.current.record() == nullptr || !membership_.spans_hosts) return "";
  std::string list;
  for (const Rank peer : membership_.mesh.remote_ranks()) {
    if (membership_.board.last(peer) < control_.current.record()->sequence)
      list += (list.empty() ? "" : ", ") + std::to_string(peer);
  }
  return list.empty()
             ? ""
             : "; no report of this call from rank " + list + ", which may be late, stopped or in another call";
}

// Spins for the usual time of an answer, then sleeps until a frame of `peer` arrives. First sends everything that the
// call has posted, to all peers. Progresses the connections to other peers at intervals.
Status HostCommunicator::wait_remote(Rank peer, WaitState& wait_state) {
  if (wait_state.polls == 1) membership_.mesh.push();
  if (shares_cpu_) ::sched_yield();
  if (wait_state.polls % kPollsPerClock != 0) {
    if (membership_.mesh.is_remote(peer)) membership_.mesh.connection(peer).advance();
    return {};
  }
  membership_.mesh.advance();
  const std::int64_t now = now_ns();
  if (wait_state.yielded_ns == 0) wait_state.yielded_ns = now;
  if (now - wait_state.yielded_ns < (shares_cpu_ ? kOfferNs : kSpinNs)) {
    find_others(now);
    return {};
  }
  if (membership_.mesh.is_remote(peer)) {
    membership_.mesh.wait(peer, 1);
  } else {
    ::sched_yield();
  }
  return look_around(peer, wait_state);
}

// Yields to other threads that are ready on this CPU, whether of this job or not. An answer may depend on them. While
// there are any, each poll yields.
void HostCommunicator::find_others(std::int64_t now) {
  ::sched_yield();
  shares_cpu_ = now_ns() - now > kAloneNs;
}

void HostCommunicator::report_remote_wait(std::int64_t now, WaitState& wait_state) {
  if (wait_state.reported_call || now - wait_state.began_ns < kReportNs) return;
  wait_state.reported_call = true;
  control_.notifications.report_calls(NotificationKind::call);
}

bool HostCommunicator::drained() {
  if (!membership_.spans_hosts) return true;
  for (const Rank peer : membership_.mesh.remote_ranks()) {
    if (!membership_.mesh.connection(peer).drained(membership_.mesh.context(peer))) return false;
  }
  return true;
}

Status HostCommunicator::drain() {
  for (const Rank peer : membership_.mesh.remote_ranks()) {
    WaitState wait_state;
    while (!membership_.mesh.connection(peer).drained(membership_.mesh.context(peer)))
      TUTTI_CHECK_OK(wait_for(peer, wait_state));
  }
  return {};
}

}  // namespace tutti
