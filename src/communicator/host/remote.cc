// Communication with ranks of other hosts. Calls and failures are sent to them as notifications, since they do not see
// the board. This rank progresses its lanes to them itself while it waits.
#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Time that a wait spins before it sleeps between messages.
constexpr std::int64_t kSpinNs = 50'000;
constexpr std::int64_t kReportingMs = 100;
// Duration of a wait after which a rank reports its call to other hosts.
constexpr std::int64_t kReportNs = 200'000'000;
constexpr std::uint32_t kPollsPerClock = 16;
// Like kSpinNs, for a rank that yields its CPU to other threads meanwhile.
constexpr std::int64_t kOfferNs = 1'000'000;
// A yield takes less time if no other thread is ready to run on the CPU.
constexpr std::int64_t kAloneNs = 2'000;
// Minimum time between polls for notifications before a call.
constexpr std::int64_t kNotificationNs = 50'000;

}  // namespace

void HostCommunicator::poll_notifications() {
  if (!membership_.spans_hosts) return;
  const std::unique_lock lock(polling_, std::try_to_lock);
  if (!lock) return;
  while (const auto notifications = membership_.mesh.receive()) {
    if (notifications->kind == NotificationKind::failure) {
      membership_.board.publish(notifications->payload);
      continue;
    }
    for (std::size_t at = 0; at + sizeof(CallRecord) <= notifications->payload.size(); at += sizeof(CallRecord)) {
      CallRecord record;
      std::memcpy(&record, notifications->payload.data() + at, sizeof record);
      if (record.sequence > 0) membership_.board.announce(notifications->peer, record);
    }
    if (notifications->kind == NotificationKind::leaving)
      store_release(&membership_.board.entry(notifications->peer).left, 1U);
  }
}

void HostCommunicator::report_failure() {
  if (!membership_.spans_hosts || !membership_.board.failed() || !membership_.board.found_by(membership_.rank)) return;
  membership_.mesh.notify(NotificationKind::failure, membership_.board.failure_record());
  // No thread sends the rest after this call has returned.
  membership_.mesh.drain_for(kReportingMs);
}

// Checks for failures before a call. A late rank, or one that only sends, does not wait and would not detect them
// otherwise. Each check is a system call, so ranks in a fast sequence of calls skip most of them.
Status HostCommunicator::poll_before_call() {
  const std::int64_t now = now_ns();
  if (now - received_ns_ >= kNotificationNs) {
    received_ns_ = now;
    membership_.mesh.advance();
  }
  if (!membership_.mesh.has_notes()) return {};
  poll_notifications();
  return membership_.board.failed() ? membership_.board.failure(membership_.rank) : Status();
}

void HostCommunicator::report_call(NotificationKind kind) {
  std::vector<CallRecord> records;
  const std::uint64_t last = membership_.board.last(membership_.rank);
  const std::uint64_t calls = kind == NotificationKind::leaving ? std::min<std::uint64_t>(last, kCallHistory) : 1;
  for (std::uint64_t call = last + 1 - calls; call > 0 && call <= last; ++call) {
    if (const auto record = membership_.board.call(membership_.rank, call)) records.push_back(*record);
  }
  membership_.mesh.notify(kind, std::as_bytes(std::span(records)));
}

// Ranks of other hosts reported their last calls when they left. Ranks that only send to each other detect here that
// their calls differed.
Status HostCommunicator::compare_last_calls() const {
  for (const Rank peer : membership_.mesh.remote_ranks()) {
    const std::uint64_t last = membership_.board.last(peer);
    for (std::uint64_t call = last; call > 0 && call + kCallHistory > last; --call) {
      const auto ours = membership_.board.call(membership_.rank, call);
      const auto theirs = membership_.board.call(peer, call);
      if (ours && theirs && ours->signature != theirs->signature)
        return disagreement(membership_.options.name, {membership_.rank, *ours}, {peer, *theirs});
    }
  }
  return {};
}

// Returns the ranks of other hosts that have not reported this call. Ranks report their calls when they wait long.
std::string HostCommunicator::never_received() const {
  if (record_ == nullptr || !membership_.spans_hosts) return "";
  std::string list;
  for (const Rank peer : membership_.mesh.remote_ranks()) {
    if (membership_.board.last(peer) < record_->sequence) list += (list.empty() ? "" : ", ") + std::to_string(peer);
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
  report_call(NotificationKind::call);
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
