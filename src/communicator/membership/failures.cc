#include "src/communicator/membership/failures.h"

#include <utility>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/call/operation.h"
#include "src/communicator/control/remote_access.h"

namespace tutti {
namespace {

constexpr std::int64_t kPublishingMs = 100;  // Time for another rank to write the failure that it has found.

}  // namespace

Status Failures::fail(Status status) {
  membership_.board.fail(membership_.rank, status);
  status = published(std::move(status));
  notifications_.report_failure();
  return status;
}

Status Failures::call_off(const Status& reason) {
  membership_.board.fail(membership_.rank, reason, FailureReason::called_off);
  Status status = published(reason.copy());
  notifications_.report_failure();
  return status;
}

Status Failures::reported(Status status) {
  return is_rejected_call(status) ? std::move(status) : fail(std::move(status));
}

void Failures::abort() {
  membership_.board.fail(membership_.rank,
                         aborted_error("rank " + std::to_string(membership_.rank) + " aborted the communicator"));
  notifications_.report_failure();
}

void Failures::check_abort() {
  const std::uint32_t* word = membership_.board.failed() ? nullptr : abort_.load(std::memory_order_relaxed);
  if (word != nullptr && load_acquire(word) != 0) abort();
}

Status Failures::found(const std::string& when) {
  Status status = found_unpublished(when);
  if (status.ok()) return status;
  return membership_.board.failed() ? membership_.board.failure(membership_.rank) : fail(std::move(status));
}

Status Failures::found_unpublished(const std::string& when) {
  const Board& board = membership_.board;
  check_abort();
  if (!board.failed()) notifications_.poll();
  if (board.failed()) return board.failure(membership_.rank);
  const auto dead = membership_.mesh.find_dead();
  if (!dead) return {};
  notifications_.poll();  // The peer may have reported why it ends.
  return board.failed() ? board.failure(membership_.rank) : death(*dead, when);
}

Status Failures::death(Rank peer, const std::string& when) const {
  Status status = membership_.mesh.death(peer, when);
  return {status.code(), status.message() + membership_.board.describe_rejection(peer)};
}

void Failures::wait_for_remote_access() {
  const Board& board = membership_.board;
  if (!board.failed()) return;
  const NoCancellation until_return;
  tutti::wait_for_remote_access(board, membership_.mesh, membership_.rank,
                                board.remote_access_deadline(Deadline::after_ms(kRemoteAccessMs)));
}

Status Failures::published(Status own) {
  const Deadline soon = Deadline::after_ms(kPublishingMs);
  // Another rank was first and is writing the failure, or died while it did.
  while (!membership_.board.failed()) {
    if (soon.passed()) return own;
    pause();
  }
  return membership_.board.failure(membership_.rank);
}

}  // namespace tutti
