// Running of prepared calls.
#include <string>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/group.h"
#include "src/communicator/host/autotuning_operation.h"
#include "src/communicator/host/collective_operation.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/planning.h"
#include "src/executor/factor.h"

namespace tutti {
// Inlined, since every small call runs through it.
[[gnu::always_inline]] inline Status HostCommunicator::run_and_report(const Call& call,
                                                                      const CommunicatorOptions& chosen) {
  Status status = caught([&] {
    const bool again = latest_ != nullptr && !latest_->moves.empty() && call.kind == Kind::collective &&
                       latest_->serves(call, chosen.forced);
    return again ? run_brief(*latest_, call, chosen) : run_collective(call, chosen);
  });
  if (status.ok()) [[likely]]
    return status;
  status = control_.failures.reported(std::move(status));
  wait_for_remote_access();
  return status;
}

Status HostCommunicator::run(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? membership_.options : *options;
  if (membership_.board.failed()) [[unlikely]]
    return membership_.board.failure(membership_.rank);
  return membership_.spans_hosts ? run_between_hosts(call, chosen) : run_and_report(call, chosen);
}

Status HostCommunicator::run_between_hosts(const Call& call, const CommunicatorOptions& chosen) {
  const NoCancellation until_return;
  TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  return run_and_report(call, chosen);
}

Status HostCommunicator::run_collective(const Call& call, const CommunicatorOptions& chosen) {
  if (call.kind != Kind::collective) {
    const NoCancellation until_return;
    std::unique_ptr<Operation> started = TUTTI_TRY(start_messages(call, chosen.timeout_ms));
    std::vector<std::unique_ptr<Operation>> messages;
    messages.push_back(std::move(started));
    return drive(messages);
  }
  PreparedCall* prepared = latest_;
  if (prepared == nullptr || !prepared->serves(call, chosen.forced)) {
    if (autotunes(call, chosen)) {
      const NoCancellation until_return;
      return run_autotuning(call, chosen);
    }
    prepared = TUTTI_TRY(prepare_call(call, chosen));
  }
  return run_prepared(*prepared, call, chosen);
}

Status HostCommunicator::run_prepared(PreparedCall& prepared, const Call& call, const CommunicatorOptions& chosen) {
  if (!prepared.moves.empty()) return run_brief(prepared, call, chosen);
  const NoCancellation until_return;
  // The usual case: lanes are connected.
  if (prepared.interpreter && prepared.mapped_algorithm == nullptr) {
    begin(prepared, chosen);
    return run_at_once(prepared, call, chosen.compression_rounding);
  }
  CollectiveOperation operation(*this, prepared, call, chosen);
  return operation.complete();
}

Result<std::unique_ptr<Operation>> HostCommunicator::start(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? membership_.options : *options;
  if (membership_.board.failed()) return membership_.board.failure(membership_.rank);
  if (membership_.spans_hosts) TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  auto started = caught([&] { return start_collective(call, chosen); });
  if (started.ok()) return started;
  return control_.failures.reported(std::move(started).status());
}

Result<std::unique_ptr<Operation>> HostCommunicator::start_collective(const Call& call,
                                                                      const CommunicatorOptions& chosen) {
  if (call.kind != Kind::collective) return start_messages(call, chosen.timeout_ms);
  if (autotunes(call, chosen)) {
    auto autotuning = std::make_unique<AutotuningOperation>(*this, call, chosen);
    TUTTI_CHECK_OK(autotuning->begin());
    return std::unique_ptr<Operation>(std::move(autotuning));
  }
  PreparedCall* prepared = TUTTI_TRY(prepare_call(call, chosen));
  return std::unique_ptr<Operation>(std::make_unique<CollectiveOperation>(*this, *prepared, call, chosen));
}

LastRun HostCommunicator::last_run() const {
  const ConnectedPlan* plan = ran_.load(std::memory_order_acquire);
  if (plan == nullptr) return {};
  const CompressionFormat compression = plan->key.compression;
  return {.algorithm = plan->key.algorithm->name(),
          .protocol = plan->slot_bytes == 0 ? "" : tutti::name(plan->key.protocol),
          .compression = tutti::name(compression),
          .error = compression == CompressionFormat::none
                       ? 0
                       : compression_error_after(compression, plan->roundings, ran_rounding_)};
}

void HostCommunicator::show_ran(const PreparedCall& prepared) {
  ran_.store(prepared.ran_mapped ? prepared.mapped->plan : prepared.plan, std::memory_order_release);
}

void HostCommunicator::begin(PreparedCall& prepared, const CommunicatorOptions& options) {
  control_.current.begin(prepared.record, options.timeout_ms);
  waiter_.begin_call();
}

void HostCommunicator::announce(PreparedCall& prepared, const Call& call) {
  if (prepared.mapped_algorithm != nullptr) buffers_.show(prepared.record, prepared.plan->key.problem, call);
  membership_.board.announce(membership_.rank, prepared.record);
}

void HostCommunicator::bind_buffers(const PreparedCall& announced, PreparedCall& chosen, const Call& call,
                                    const RequestedRounding& requested) {
  Launch& launch = chosen.launch;
  launch.signature = signature_of(announced.record);
  launch.self = {const_cast<std::byte*>(call.input), call.output};
  if (chosen.compressed_fold) compression_counter_.add(chosen.carried);
  if (chosen.copy_input && !chosen.corrects) launch.self.input = copy_of(call.input, chosen.input_bytes);
  if (chosen.scratch_bytes > 0) launch.scratch = scratch(chosen.scratch_bytes);
  if (call.reduction == Reduction::pre_mul_sum) {
    Factor factor = {call.scalar, call.integer_scalar};
    if (call.factor != nullptr) factor = factor_of(call.type, call.factor);
    chosen.interpreter->backend().scale(factor.scale, factor.integer_scale);
  }
  if (chosen.compressed_fold) bind_rounding(chosen, call, requested);
  chosen.interpreter->start();
}

// Sends first, and publishes the call record while the data is in flight.
Status HostCommunicator::run_at_once(PreparedCall& prepared, const Call& call, const RequestedRounding& requested) {
  bind_buffers(prepared, prepared, call, requested);
  const Progress progress = prepared.interpreter->advance();
  membership_.board.announce(membership_.rank, prepared.record);
  return progress == Progress::done && !membership_.spans_hosts ? Status() : wait_and_advance(prepared, progress);
}

Status HostCommunicator::run_brief(PreparedCall& prepared, const Call& call, const CommunicatorOptions& options) {
  begin(prepared, options);
  prepared.launch.self = {const_cast<std::byte*>(call.input), call.output};
  struct Hooks {
    HostCommunicator& owner;
    const CallRecord& record;
    bool announced = false;
    // Publishes the call record while the message is in flight. A poll right after the send would take the cache line
    // from the writer.
    void look() {
      owner.membership_.board.announce(owner.membership_.rank, record);
      announced = true;
    }
    Status await(const Blocked& blocked, Progress progress) {
      if (progress == Progress::mismatch) return owner.control_.matching.mismatch_with(blocked.operand->peer);
      return owner.waiter_.await_brief(blocked);
    }
  } hooks{*this, prepared.record};
  TUTTI_CHECK_OK(BriefRun(prepared.moves, signature_of(prepared.record), prepared.interpreter->backend(), hooks).run());
  if (!hooks.announced) hooks.look();
  return {};
}

Status HostCommunicator::complete(PreparedCall& prepared) {
  const Progress progress = prepared.interpreter->advance();
  return progress == Progress::done && !membership_.spans_hosts ? Status() : wait_and_advance(prepared, progress);
}

// Polls only the operand for which the step waits.
Status HostCommunicator::wait_and_advance(PreparedCall& prepared, Progress progress) {
  Interpreter<CpuBackend>& interpreter = *prepared.interpreter;
  for (; progress != Progress::done; progress = interpreter.advance()) {
    if (progress == Progress::mismatch) return control_.matching.mismatch_with(interpreter.blocked().operand->peer);
    TUTTI_CHECK_OK(waiter_.await(interpreter.blocked()));
  }
  return membership_.spans_hosts ? waiter_.drain() : Status();
}

}  // namespace tutti
