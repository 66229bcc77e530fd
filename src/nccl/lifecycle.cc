// Shutdown and suspension of communicators. Shutdown does not wait for peers directly, but may wait for this rank's
// enqueued calls, in which peers take part.
#include <utility>

#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {
namespace {

// In a group, the calls of the communicator run before its end.
Outcome finalize(ncclComm_t comm) {
  Shared communicator;
  TUTTI_NCCL_CHECK(find_ready(comm, communicator));
  TUTTI_NCCL_CHECK(communicator->close());
  return submit_end(communicator);
}

Outcome destroy(ncclComm_t comm) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  const Outcome state = communicator->state();
  if (state.code == ncclInProgress) return still_in_progress(", or abort it");
  if (communicator->settings.mode == Mode::blocking && !communicator->is_joined()) {
    return invalid_argument("the ranks of the communicator have not joined yet: end its group first, or abort it");
  }
  const bool has_fallback = communicator->is_joined() && communicator->fallback() != nullptr;
  if (state.failed() && has_fallback) communicator->fallback()->abort();  // Its destroy would wait for dead peers.
  return retire(comm) == nullptr ? no_communicator(comm) : Outcome();
}

Outcome abort(ncclComm_t comm) {
  const Shared communicator = retire(comm);
  if (communicator == nullptr) return no_communicator(comm);
  communicator->abort();
  return {};
}

// Calls end at once, even within a group.
Outcome revoke(ncclComm_t comm, int flags) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (flags != kRevokeDefault)
    return invalid_argument("revokeFlags is " + std::to_string(flags) + ": pass NCCL_REVOKE_DEFAULT");
  TUTTI_NCCL_CHECK(communicator->ready_to_end_calls());
  if (!communicator->end_calls(EndedBy::revoke))
    return invalid_argument("the calls of the communicator were ended before; shrink, split or destroy it");
  return submit(Job{communicator, [communicator] { return communicator->quiesce(); }, nullptr});
}

// Calls fail from now on, also those of the same group, which run after its jobs.
Outcome suspend(ncclComm_t comm, int flags) {
  if (flags != kSuspendMemory)
    return invalid_argument("flags is " + std::to_string(flags) + ": pass NCCL_SUSPEND_MEM, 1");
  Shared communicator;
  TUTTI_NCCL_CHECK(find_ready(comm, communicator));
  Job job{communicator, [communicator] { return communicator->suspend(); },
          [communicator] { communicator->cancel_suspension(); }};
  communicator->begin_suspension();
  return submit(std::move(job));
}

Outcome resume(ncclComm_t comm) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (communicator->state().code == ncclInProgress) return still_in_progress();
  if (!communicator->is_suspended())
    return invalid_usage("the communicator is not suspended: call ncclCommSuspend on all ranks first");
  return submit(Job{communicator, [communicator] { return communicator->resume(); }, nullptr});
}

}  // namespace

TUTTI_NCCL_API(ncclResult_t, CommFinalize, ncclComm_t comm) {
  return grouped("ncclCommFinalize", [&] { return finalize(comm); });
}

TUTTI_NCCL_API(ncclResult_t, CommDestroy, ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded("ncclCommDestroy", [&] { return destroy(comm); });
}

TUTTI_NCCL_API(ncclResult_t, CommAbort, ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded("ncclCommAbort", [&] { return abort(comm); });
}

// Collective, like ncclCommResume. A thread that drives several ranks calls them in a group.
TUTTI_NCCL_API(ncclResult_t, CommSuspend, ncclComm_t comm, int flags) {
  return grouped("ncclCommSuspend", [&] { return suspend(comm, flags); });
}

TUTTI_NCCL_API(ncclResult_t, CommResume, ncclComm_t comm) {
  return grouped("ncclCommResume", [&] { return resume(comm); });
}

// Peers that have not revoked the communicator get ncclRemoteError.
TUTTI_NCCL_API(ncclResult_t, CommRevoke, ncclComm_t comm, int flags) {
  if (comm == nullptr) return ncclSuccess;
  return grouped("ncclCommRevoke", [&] { return revoke(comm, flags); });
}

}  // namespace tutti::nccl
