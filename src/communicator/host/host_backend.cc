#include "src/communicator/host/host_backend.h"

#include <utility>
#include <vector>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/no_cancellation.h"

namespace tutti {

// Inlined, since every small call runs through it.
[[gnu::always_inline]] inline Status HostBackend::run_and_report(const Call& call, const CommunicatorOptions& options) {
  Status status = caught([&] {
    PreparedCall* const prepared = collectives_.brief_for(call, options);
    return prepared != nullptr ? collectives_.run_brief(*prepared, call, options) : run_unprepared(call, options);
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
  return run_and_report(call, options);
}

Status HostBackend::run_unprepared(const Call& call, const CommunicatorOptions& options) {
  if (call.kind == Kind::collective) return collectives_.run(call, options);
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
  auto started = caught([&] {
    return call.kind == Kind::collective ? collectives_.start(call, options)
                                         : messages_.start(call, options.timeout_ms);
  });
  if (started.ok()) return started;
  return control_.failures.reported(std::move(started).status());
}

Status HostBackend::finish() {
  collectives_.save_tuning();
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
  if (membership.spans_hosts) TUTTI_CHECK_OK(control_.matching.compare_last());
  return messages_.find_lost();
}

}  // namespace tutti
