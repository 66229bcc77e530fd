#include "src/communicator/host/collective_operation.h"

#include <string>

namespace tutti {

CollectiveOperation::CollectiveOperation(CallRunner& runner, PreparedCall& prepared, const Call& call,
                                         const CommunicatorOptions& options)
    : runner_(runner), prepared_(prepared), call_(call), rounding_(options.compression_rounding) {
  runner.begin(prepared, options);
  if (const Mappable* mappable = std::get_if<Mappable>(&prepared.run))
    runner.buffers_.show(prepared.record, mappable->lanes->plan.key.problem, call);
  runner.membership_.board.announce(runner.membership_.rank, prepared.record);
}

Result<bool> CollectiveOperation::choose_run() {
  if (const OverLanes* over_lanes = std::get_if<OverLanes>(&prepared_.run)) run_ = over_lanes->get();
  Mappable* const mappable = std::get_if<Mappable>(&prepared_.run);
  if (mappable == nullptr) return true;
  const auto sight = TUTTI_TRY(runner_.buffers_.see(prepared_.record, mappable->lanes->plan.key.problem, awaited_));
  if (sight == BufferVisibility::waiting) return false;
  const bool mapped = sight != BufferVisibility::hidden;
  // All ranks fail here, before any rank has done work.
  if (mappable->otherwise == Mappable::Otherwise::fails && !mapped) {
    return invalid_argument(std::string(mappable->algorithm.name()) +
                            " works in memory that all ranks can map: pass buffers from tutti_mem_alloc on all of "
                            "them, or do not force an algorithm");
  }
  PlanRun* run = mappable->lanes.get();
  if (mapped) run = TUTTI_TRY(runner_.preparer_.mapped_run(*mappable, call_, runner_.buffers_.peers()));
  mappable->ran_mapped = mapped;
  runner_.statistics_.record(run->plan.runs.nearest);  // Such calls are not compressed.
  run_ = run;
  return true;
}

Result<bool> CollectiveOperation::get_ready() {
  if (run_ == nullptr) {
    const bool chosen = TUTTI_TRY(choose_run());
    if (!chosen) return false;
    if (run_ == nullptr) return true;
  }
  const auto awaited = TUTTI_TRY(runner_.preparer_.awaited_by(call_, *run_));
  if (awaited) {
    awaited_ = *awaited;
    return false;
  }
  if (prepared_.ran_mapped()) {
    remote_access_.emplace(runner_.membership_.board, runner_.membership_.rank);
    TUTTI_CHECK_OK(remote_access_->check());
  }
  TUTTI_CHECK_OK(runner_.bind_buffers(prepared_.record, *run_, call_, rounding_));
  return true;
}

Result<bool> CollectiveOperation::advance() {
  return runner_.control_.failures.guarded([this] { return go_on(); });
}

Result<bool> CollectiveOperation::go_on() {
  if (!ready_) {
    ready_ = TUTTI_TRY(get_ready());
    if (!ready_) return false;
  }
  if (run_ == nullptr) return true;
  const Progress progress = runner_.waiter_.advance(*run_->interpreter, wait_state_);
  if (progress == Progress::done) {
    if (remote_access_) TUTTI_CHECK_OK(remote_access_->check());
    remote_access_.reset();
    return runner_.waiter_.drained();
  }
  awaited_ = run_->interpreter->blocked().operand->peer;
  if (progress == Progress::mismatch) return runner_.control_.matching.mismatch_with(awaited_);
  return false;
}

Status CollectiveOperation::complete() {
  while (!ready_) {
    ready_ = TUTTI_TRY(get_ready());
    if (!ready_) TUTTI_CHECK_OK(wait());
  }
  if (run_ == nullptr) return {};
  TUTTI_CHECK_OK(runner_.complete(*run_));
  return remote_access_ ? remote_access_->check() : Status();
}

}  // namespace tutti
