#include "src/communicator/membership/notifications.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/clock.h"

namespace tutti {
namespace {

constexpr std::int64_t kReportingMs = 100;
// Minimum time between polls for notifications before a call.
constexpr std::int64_t kNotificationNs = 50'000;

}  // namespace

void Notifications::poll() {
  if (!membership_.spans_hosts) return;
  const std::unique_lock lock(polling_, std::try_to_lock);
  if (!lock) return;
  const Board& board = membership_.board;
  while (const auto notification = membership_.mesh.receive()) {
    if (notification->kind == NotificationKind::failure) {
      board.publish(notification->payload);
      continue;
    }
    if (notification->kind == NotificationKind::wait_request) {
      wait_requests_.push_back(notification->peer);
      continue;
    }
    if (notification->kind == NotificationKind::wait) {
      Wait wait;
      if (notification->payload.size() != sizeof wait) continue;
      std::memcpy(&wait, notification->payload.data(), sizeof wait);
      show_wait(board.entry(notification->peer).wait, wait);
      continue;
    }
    if (notification->kind == NotificationKind::rejection) {
      RejectionRecord record;
      if (notification->payload.size() != sizeof record) continue;
      std::memcpy(&record, notification->payload.data(), sizeof record);
      if (const auto rejection = read_rejection(record))
        show_rejection(board.entry(notification->peer).rejection, *rejection);
      continue;
    }
    for (std::size_t at = 0; at + sizeof(CallRecord) <= notification->payload.size(); at += sizeof(CallRecord)) {
      CallRecord record;
      std::memcpy(&record, notification->payload.data() + at, sizeof record);
      if (record.sequence > 0) board.announce(notification->peer, record);
    }
    if (notification->kind == NotificationKind::leaving) store_release(&board.entry(notification->peer).left, 1U);
  }
}

Status Notifications::poll_before_call() {
  const std::int64_t now = now_ns();
  if (now - received_ns_ >= kNotificationNs) {
    received_ns_ = now;
    membership_.mesh.advance();
  }
  if (!membership_.mesh.has_notes()) return {};
  poll();
  return membership_.board.failed() ? membership_.board.failure(membership_.rank) : Status();
}

void Notifications::report_failure() {
  const Board& board = membership_.board;
  if (!membership_.spans_hosts || !board.failed() || !board.found_by(membership_.rank)) return;
  membership_.mesh.notify(NotificationKind::failure, board.failure_record());
  // No thread sends the rest after this call has returned.
  membership_.mesh.drain_for(kReportingMs);
}

void Notifications::request_waits() {
  const std::lock_guard lock(polling_);
  for (const Rank peer : membership_.mesh.remote_ranks()) show_wait(membership_.board.entry(peer).wait, {});
  membership_.mesh.notify(NotificationKind::wait_request, {});
}

void Notifications::answer_wait_requests(const Wait& wait) {
  const std::lock_guard lock(polling_);
  for (const Rank peer : wait_requests_)
    membership_.mesh.notify(peer, NotificationKind::wait, std::as_bytes(std::span(&wait, 1)));
  wait_requests_.clear();
}

void Notifications::report_calls(NotificationKind kind) {
  std::vector<CallRecord> records;
  const std::uint64_t last = membership_.board.last(membership_.rank);
  const std::uint64_t calls = kind == NotificationKind::leaving ? std::min<std::uint64_t>(last, kCallHistory) : 1;
  for (std::uint64_t call = last + 1 - calls; call > 0 && call <= last; ++call) {
    if (const auto record = membership_.board.call(membership_.rank, call)) records.push_back(*record);
  }
  membership_.mesh.notify(kind, std::as_bytes(std::span(records)));
}

void Notifications::report_rejection(RejectedCall call, const std::string& text) {
  const Board& board = membership_.board;
  const Rejection rejection = {board.last(membership_.rank), call, text};
  if (!show_rejection(board.entry(membership_.rank).rejection, rejection) || !membership_.spans_hosts) return;
  RejectionRecord record;
  show_rejection(record, rejection);
  rejected_after_ = rejection.collectives;  // First, so that a call of another thread corrects it.
  membership_.mesh.notify(NotificationKind::rejection, std::as_bytes(std::span(&record, 1)));
}

void Notifications::report_correction() {
  const std::uint64_t after = rejected_after_.load(std::memory_order_relaxed);
  if (after == kNone || membership_.board.last(membership_.rank) <= after) return;
  rejected_after_ = kNone;
  (void)caught([&]() -> Status {
    report_calls(NotificationKind::call);
    return {};
  });
}

}  // namespace tutti
