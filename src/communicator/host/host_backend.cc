#include "src/communicator/host/host_backend.h"

#include <utility>
#include <vector>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/host/autotuned_call.h"
#include "src/communicator/host/collective_operation.h"

namespace tutti {

// ---- Prepared calls ----

Result<HostBackend::Found> HostBackend::prepare(const Call& call, const CommunicatorOptions& options) {
  latest_ = nullptr;
  const CallKey key = preparer_.key_of(call, options);
  CallCache<HostCallPreparer>::Slot* slot = prepared_.find(key);
  if (slot == nullptr) {
    const NoCancellation until_prepared;
    control_.membership.board.show_cpus(control_.membership.rank);
    slot = TUTTI_TRY(prepared_.fill(key, call, options));
  }
  if (HostAutotuning::Class* const tuned = slot->tuned()) {
    const NoCancellation until_prepared;
    const HostAutotuning::Trial trial = tuned->next();
    PreparedCall* tried = TUTTI_TRY(prepared_.try_candidate(*slot, call, options, *tuned, trial));
    show(*tried, options);
    if (!tuned->settled()) return Found{tried, tuned};
    prepared_.settle(*slot, trial);
  }
  latest_ = slot->prepared();
  show(*latest_, options);
  return Found{latest_, nullptr};
}

// CollectiveOperation shows mappable calls, once it is known whether they are mapped.
void HostBackend::show(const PreparedCall& prepared, const CommunicatorOptions& options) {
  if (std::holds_alternative<WithoutData>(prepared.run)) statistics_.record(RunStatistics::kNoMessages);
  if (const OverLanes* over_lanes = std::get_if<OverLanes>(&prepared.run))
    statistics_.record((*over_lanes)->plan.runs.with(options.compression_rounding.rounding));
}

// ---- Calls ----

// Inlined, since every small call runs through it.
[[gnu::always_inline]] inline Status HostBackend::run_and_report(const Call& call, const CommunicatorOptions& options) {
  Status status = caught([&] {
    if (latest_ != nullptr && latest_->serves(call, options.agreement_hash)) {
      PlanRun* const brief = brief_run_of(*latest_);
      if (brief != nullptr) return runner_.run_brief(*latest_, *brief, call, options);
    }
    return call.kind == Kind::collective ? run_collective(call, options) : run_messages(call, options);
  });
  if (status.ok()) [[likely]]
    return status;
  status = control_.failures.reported(std::move(status));
  wait_for_remote_access();
  return status;
}

Status HostBackend::run(const Call& call, const CommunicatorOptions& options) {
  const Membership& membership = control_.membership;
  if (membership.board.failed()) [[unlikely]]
    return membership.board.failure(membership.rank);
  return membership.spans_hosts ? run_between_hosts(call, options) : run_and_report(call, options);
}

Status HostBackend::run_between_hosts(const Call& call, const CommunicatorOptions& options) {
  const NoCancellation until_return;
  TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  Status status = run_and_report(call, options);
  if (status.ok()) control_.notifications.report_correction();
  return status;
}

Status HostBackend::run_collective(const Call& call, const CommunicatorOptions& options) {
  if (latest_ != nullptr && latest_->serves(call, options.agreement_hash)) return runner_.run(*latest_, call, options);
  if (!is_tunable(call, options, control_.membership.ranks)) {
    const Found found = TUTTI_TRY(prepare(call, options));
    return runner_.run(*found.prepared, call, options);
  }
  const NoCancellation until_return;
  AutotunedCall autotuned(*this, runner_, call, options);
  for (;;) {
    const AutotunedCall::Collective* next = TUTTI_TRY(autotuned.next());
    if (next == nullptr) return {};
    TUTTI_CHECK_OK(runner_.run(*next->prepared, next->call, next->options));
  }
}

Status HostBackend::run_messages(const Call& call, const CommunicatorOptions& options) {
  const NoCancellation until_return;
  std::unique_ptr<Operation> started = TUTTI_TRY(messages_.start(call, options.timeout_ms));
  std::vector<std::unique_ptr<Operation>> operations;
  operations.push_back(std::move(started));
  return drive(operations);
}

Result<std::unique_ptr<Operation>> HostBackend::start(const Call& call, const CommunicatorOptions& options) {
  const Membership& membership = control_.membership;
  if (membership.board.failed()) return membership.board.failure(membership.rank);
  if (membership.spans_hosts) TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  auto started = control_.failures.guarded([&] {
    return call.kind == Kind::collective ? start_collective(call, options) : messages_.start(call, options.timeout_ms);
  });
  if (started.ok()) control_.notifications.report_correction();
  return started;
}

Result<std::unique_ptr<Operation>> HostBackend::start_collective(const Call& call, const CommunicatorOptions& options) {
  if (is_tunable(call, options, control_.membership.ranks)) {
    auto autotuned = std::make_unique<AutotunedCall>(*this, runner_, call, options);
    TUTTI_TRY(autotuned->start_next());
    return std::unique_ptr<Operation>(std::move(autotuned));
  }
  const Found found = TUTTI_TRY(prepare(call, options));
  return std::unique_ptr<Operation>(std::make_unique<CollectiveOperation>(runner_, *found.prepared, call, options));
}

// ---- Ending ----

Status HostBackend::finish() {
  autotuning().write();
  return {};
}

// A lost message affects only its two ranks, which report it to their callers. No rank waits for it, so the
// communicator does not fail.
Status HostBackend::await_leaving() {
  const Membership& membership = control_.membership;
  control_.current.begin_unrecorded(membership.options.timeout_ms);  // The last call may have had another limit.
  for (Rank peer = 0; peer < membership.ranks; ++peer) {
    WaitState wait_state = {.watches_board = true};
    while (load_acquire(&membership.board.entry(peer).left) == 0) TUTTI_CHECK_OK(waiter_.wait_for(peer, wait_state));
  }
  // Ranks of other hosts reported their last calls when they left.
  if (membership.spans_hosts) TUTTI_CHECK_OK(control_.matching.compare_recent(ComparedPeers::on_other_hosts));
  return messages_.find_lost();
}

}  // namespace tutti
