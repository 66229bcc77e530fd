#include "src/communicator/host/collective_operation.h"

#include <string>
#include <utility>

#include "src/base/caught.h"

namespace tutti {

CollectiveOperation::CollectiveOperation(CollectiveParts& parts, PreparedCall& prepared, const Call& call,
                                         const CommunicatorOptions& options)
    : parts_(parts), prepared_(prepared), call_(call), rounding_(options.compression_rounding) {
  parts.runner.begin(prepared, options);
  if (prepared.mapped_algorithm != nullptr) parts.buffers.show(prepared.record, prepared.plan->key.problem, call);
  const Membership& membership = parts.control.membership;
  membership.board.announce(membership.rank, prepared.record);
}

Result<bool> CollectiveOperation::get_ready() {
  if (chosen_ == nullptr) {
    auto sight = BufferVisibility::hidden;
    if (prepared_.mapped_algorithm != nullptr)
      sight = TUTTI_TRY(parts_.buffers.see(prepared_.record, prepared_.plan->key.problem, awaited_));
    if (sight == BufferVisibility::waiting) return false;
    const bool mapped = sight != BufferVisibility::hidden;
    // All ranks fail here, before any rank has done work.
    if (prepared_.mapped_only && !mapped) {
      return invalid_argument(std::string(prepared_.mapped_algorithm->name()) +
                              " works in memory that all ranks can map: pass buffers from tutti_mem_alloc on all of "
                              "them, or leave the choice open");
    }
    PreparedCall* chosen = &prepared_;
    if (mapped) chosen = TUTTI_TRY(parts_.planner.mapped_variant(prepared_, call_, parts_.buffers.peers()));
    prepared_.ran_mapped = mapped;
    parts_.calls.show_ran(prepared_);
    chosen_ = chosen;
  }
  const auto awaited = TUTTI_TRY(parts_.planner.awaited_by(call_, *chosen_));
  if (awaited) {
    awaited_ = *awaited;
    return false;
  }
  if (chosen_->plan == nullptr) return true;
  if (chosen_ != &prepared_) {
    const Membership& membership = parts_.control.membership;
    remote_access_.emplace(membership.board, membership.rank);
    TUTTI_CHECK_OK(remote_access_->check());
  }
  parts_.runner.bind_buffers(prepared_, *chosen_, call_, rounding_);
  return true;
}

Result<bool> CollectiveOperation::advance() {
  Result<bool> done = caught([this] { return go_on(); });
  if (!done.ok()) return parts_.control.failures.reported(std::move(done).status());
  return done;
}

Result<bool> CollectiveOperation::go_on() {
  if (!ready_) {
    ready_ = TUTTI_TRY(get_ready());
    if (!ready_) return false;
  }
  if (chosen_->plan == nullptr) return true;
  Membership& membership = parts_.control.membership;
  if (membership.spans_hosts) membership.mesh.advance();
  const Cursor before = chosen_->interpreter->cursor();
  const Progress progress = chosen_->interpreter->advance();
  if (!(chosen_->interpreter->cursor() == before)) {
    wait_state_ = {};
    parts_.waiter.note_progress();
  }
  if (progress == Progress::done) {
    if (remote_access_) TUTTI_CHECK_OK(remote_access_->check());
    remote_access_.reset();
    return parts_.waiter.drained();
  }
  awaited_ = chosen_->interpreter->blocked().operand->peer;
  if (progress == Progress::mismatch) return parts_.control.matching.mismatch_with(awaited_);
  return false;
}

Status CollectiveOperation::complete() {
  while (!ready_) {
    ready_ = TUTTI_TRY(get_ready());
    if (!ready_) TUTTI_CHECK_OK(wait());
  }
  if (chosen_->plan == nullptr) return {};
  TUTTI_CHECK_OK(parts_.runner.complete(*chosen_));
  return remote_access_ ? remote_access_->check() : Status();
}

}  // namespace tutti
