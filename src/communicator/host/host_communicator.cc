#include "src/communicator/host/host_communicator.h"

#include <utility>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/base/no_cancellation.h"
#include "src/communicator/group.h"

namespace tutti {
HostCommunicator::HostCommunicator(Rank rank, Mesh mesh, Board board, CommunicatorOptions options, Spread spread)
    : control_(rank, std::move(mesh), std::move(board), std::move(options), spread) {}

HostCommunicator::~HostCommunicator() { control_.membership.mesh.leave(); }

// ---- Calls ----

void HostCommunicator::announce(CallRecord& record) {
  control_.current.number(record);
  board().announce(rank(), record);
}

// Inlined, since every small call runs through it.
[[gnu::always_inline]] inline Status HostCommunicator::run_and_report(const Call& call,
                                                                      const CommunicatorOptions& chosen) {
  Status status = caught([&] {
    PreparedCall* const prepared = collectives_.brief_for(call, chosen);
    return prepared != nullptr ? collectives_.run_brief(*prepared, call, chosen) : run_unprepared(call, chosen);
  });
  if (status.ok()) [[likely]]
    return status;
  status = control_.failures.reported(std::move(status));
  wait_for_remote_access();
  return status;
}

Status HostCommunicator::run(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? membership().options : *options;
  if (board().failed()) [[unlikely]]
    return board().failure(rank());
  return membership().spans_hosts ? run_between_hosts(call, chosen) : run_and_report(call, chosen);
}

Status HostCommunicator::run_between_hosts(const Call& call, const CommunicatorOptions& chosen) {
  const NoCancellation until_return;
  TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  return run_and_report(call, chosen);
}

Status HostCommunicator::run_unprepared(const Call& call, const CommunicatorOptions& chosen) {
  if (call.kind == Kind::collective) return collectives_.run(call, chosen);
  const NoCancellation until_return;
  std::unique_ptr<Operation> started = TUTTI_TRY(messages_.start(call, chosen.timeout_ms));
  std::vector<std::unique_ptr<Operation>> operations;
  operations.push_back(std::move(started));
  return drive(operations);
}

Result<std::unique_ptr<Operation>> HostCommunicator::start(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? membership().options : *options;
  if (board().failed()) return board().failure(rank());
  if (membership().spans_hosts) TUTTI_CHECK_OK(control_.notifications.poll_before_call());
  auto started = caught([&] {
    return call.kind == Kind::collective ? collectives_.start(call, chosen) : messages_.start(call, chosen.timeout_ms);
  });
  if (started.ok()) return started;
  return control_.failures.reported(std::move(started).status());
}

Status HostCommunicator::await_ticket(std::uint64_t ticket) {
  // Earlier calls end in bounded time, even if they fail.
  for (auto served = served_.load(); served != ticket; served = served_.load()) served_.wait(served);
  return {};
}

// ---- Ending ----

// Peers need nothing more from this rank. Lanes are in the reader's memory. Data sent before the goodbye of ~Mesh is
// read before it. A call ends only after peers have finished access to its buffers.
Status HostCommunicator::leave() {
  TUTTI_CHECK_OK(await_ticket(tickets_.load()));
  collectives_.save_tuning();
  if (board().failed()) return board().failure(rank());
  store_release(&board().entry(rank()).left, 1U);
  if (!membership().spans_hosts) return {};
  for (const Rank peer : membership().mesh.remote_ranks()) membership().mesh.connection(peer).send_credits();
  control_.notifications.report_calls(NotificationKind::leaving);
  return {};
}

// A lost message affects only its two ranks, which report it to their callers. No rank waits for it, so the
// communicator does not fail.
Status HostCommunicator::finalize() {
  TUTTI_CHECK_OK(leave());
  control_.current.begin_unrecorded(options().timeout_ms);  // The last call may have had another limit.
  for (Rank peer = 0; peer < ranks(); ++peer) {
    WaitState wait_state;
    while (load_acquire(&board().entry(peer).left) == 0) TUTTI_CHECK_OK(waiter_.wait_for(peer, wait_state));
  }
  if (membership().spans_hosts) TUTTI_CHECK_OK(control_.matching.compare_last());
  return messages_.find_lost();
}

void HostCommunicator::abort() {
  store_release(&aborted_, 1U);
  control_.failures.abort();
}

}  // namespace tutti
