#include "src/communicator/host/collective_operation.h"

#include <string>

#include "src/base/caught.h"

namespace tutti {

CollectiveOperation::CollectiveOperation(HostCommunicator& owner, PreparedCall& prepared, const Call& call,
                                         const CommunicatorOptions& options)
    : owner_(owner), prepared_(prepared), call_(call), rounding_(options.compression_rounding) {
  owner.begin(prepared, options);
  owner.announce(prepared, call);
}

Result<bool> CollectiveOperation::get_ready() {
  if (chosen_ == nullptr) {
    auto sight = BufferVisibility::hidden;
    if (prepared_.mapped_algorithm != nullptr)
      sight = TUTTI_TRY(owner_.buffers_.see(prepared_.record, prepared_.plan->key.problem, awaited_));
    if (sight == BufferVisibility::waiting) return false;
    const bool mapped = sight != BufferVisibility::hidden;
    // All ranks fail here, before any rank has done work.
    if (prepared_.mapped_only && !mapped) {
      return invalid_argument(std::string(prepared_.mapped_algorithm->name()) +
                              " works in memory that all ranks can map: pass buffers from tutti_mem_alloc on all of "
                              "them, or leave the choice open");
    }
    PreparedCall* chosen = &prepared_;
    if (mapped) chosen = TUTTI_TRY(owner_.planner_.mapped_variant(prepared_, call_, owner_.buffers_.peers()));
    prepared_.ran_mapped = mapped;
    if (owner_.latest_ == &prepared_ || prepared_.tuned != nullptr) owner_.show_ran(prepared_);
    chosen_ = chosen;
  }
  const auto awaited = TUTTI_TRY(owner_.planner_.awaited_by(call_, *chosen_));
  if (awaited) {
    awaited_ = *awaited;
    return false;
  }
  if (chosen_->plan == nullptr) return true;
  if (chosen_ != &prepared_) {
    remote_access_.emplace(owner_.membership_.board, owner_.membership_.rank);
    TUTTI_CHECK_OK(remote_access_->check());
  }
  owner_.bind_buffers(prepared_, *chosen_, call_, rounding_);
  return true;
}

Result<bool> CollectiveOperation::advance() {
  Result<bool> done = caught([this] { return go_on(); });
  if (!done.ok()) return owner_.control_.failures.reported(std::move(done).status());
  return done;
}

Result<bool> CollectiveOperation::go_on() {
  if (!ready_) {
    ready_ = TUTTI_TRY(get_ready());
    if (!ready_) return false;
  }
  if (chosen_->plan == nullptr) return true;
  if (owner_.membership_.spans_hosts) owner_.membership_.mesh.advance();
  const Cursor before = chosen_->interpreter->cursor();
  const Progress progress = chosen_->interpreter->advance();
  if (!(chosen_->interpreter->cursor() == before)) wait_state_ = {};
  if (progress == Progress::done) {
    if (remote_access_) TUTTI_CHECK_OK(remote_access_->check());
    remote_access_.reset();
    return owner_.waiter_.drained();
  }
  awaited_ = chosen_->interpreter->blocked().operand->peer;
  if (progress == Progress::mismatch) return owner_.control_.matching.mismatch_with(awaited_);
  return false;
}

Status CollectiveOperation::complete() {
  while (!ready_) {
    ready_ = TUTTI_TRY(get_ready());
    if (!ready_) TUTTI_CHECK_OK(wait());
  }
  if (chosen_->plan == nullptr) return {};
  TUTTI_CHECK_OK(owner_.complete(*chosen_));
  return remote_access_ ? remote_access_->check() : Status();
}

}  // namespace tutti
