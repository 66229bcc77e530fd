// How communicators end. None of these waits for a peer (leaving.h).
#include "src/nccl/door.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {
namespace {

// A blocking communicator has done all that it was given. A non-blocking one waits in the background for what it was
// given, and for its peers.
Outcome finalize(ncclComm_t comm) {
  Shared communicator;
  TUTTI_NCCL_CHECK(find_ready(comm, communicator));
  TUTTI_NCCL_CHECK(communicator->close());
  if (communicator->settings.mode == Mode::blocking) return {};
  Communicator& finalized = *communicator;
  communicator->begin(communicator, [&finalized] { return outcome_of(tutti_comm_finalize(finalized.comm())); });
  return in_progress();
}

Outcome destroy(ncclComm_t comm) {
  const Shared communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (communicator->state().code == ncclInProgress) {
    return invalid_argument(
        "the communicator is still in progress: call ncclCommGetAsyncError until it no longer says ncclInProgress, or "
        "abort it");
  }
  return retire(comm) == nullptr ? no_communicator(comm) : Outcome();
}

Outcome abort(ncclComm_t comm) {
  const Shared communicator = retire(comm);
  if (communicator == nullptr) return no_communicator(comm);
  communicator->abort();
  return {};
}

}  // namespace

TUTTI_NCCL_DOOR(ncclResult_t, CommFinalize, ncclComm_t comm) {
  return guarded("ncclCommFinalize", [&] { return finalize(comm); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommDestroy, ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded("ncclCommDestroy", [&] { return destroy(comm); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommAbort, ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded("ncclCommAbort", [&] { return abort(comm); });
}

}  // namespace tutti::nccl
