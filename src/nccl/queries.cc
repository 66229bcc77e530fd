// Queries about the library and its communicators.
#include <cstdint>

#include "src/nccl/communicator.h"
#include "src/nccl/export.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

Outcome check_joined(const ncclComm* comm, Shared& communicator) {
  communicator = find(comm);
  if (communicator == nullptr) return no_communicator(comm);
  if (communicator->is_joined() && communicator->state().code != ncclInProgress) return {};
  return invalid_argument("the communicator is still in progress: wait until its ranks have joined");
}

ncclResult_t answer(const char* function, const ncclComm* comm, int* number, int (*ask)(const Communicator&)) {
  return guarded(function, [&]() -> Outcome {
    if (number == nullptr) return invalid_argument("the output pointer is NULL");
    Shared communicator;
    TUTTI_NCCL_CHECK(check_joined(comm, communicator));
    *number = ask(*communicator);
    return {};
  });
}

// All device memory of a communicator can be suspended.
Outcome memory_of(const ncclComm* comm, int statistic, std::uint64_t* value) {
  if (value == nullptr) return invalid_argument("value is NULL; pass a pointer to a uint64_t");
  if (statistic < ncclStatGpuMemSuspend || statistic > ncclStatGpuMemTotal)
    return invalid_argument("stat is " + std::to_string(statistic) +
                            "; pass ncclStatGpuMemSuspend ... ncclStatGpuMemTotal");
  Shared communicator;
  TUTTI_NCCL_CHECK(check_joined(comm, communicator));
  std::size_t bytes = 0;
  TUTTI_NCCL_CHECK(
      communicator->with_comm([&bytes](tutti_comm own) { return outcome_of(tutti_comm_device_memory(own, &bytes)); }));
  const bool is_size = statistic == ncclStatGpuMemSuspend || statistic == ncclStatGpuMemTotal;
  *value = is_size ? bytes : statistic == ncclStatGpuMemSuspended && communicator->is_suspended() ? 1 : 0;
  return {};
}

}  // namespace

TUTTI_NCCL_API(ncclResult_t, GetVersion, int* version) {
  return guarded("ncclGetVersion", [&]() -> Outcome {
    if (version == nullptr) return invalid_argument("version is NULL; pass a pointer to an int");
    *version = kVersion;
    return {};
  });
}

TUTTI_NCCL_API(ncclResult_t, CommGetAsyncError, ncclComm_t comm, ncclResult_t* error) {
  return guarded("ncclCommGetAsyncError", [&]() -> Outcome {
    if (error == nullptr) return invalid_argument("asyncError is NULL; pass a pointer to an ncclResult_t");
    const Shared communicator = find(comm);
    if (communicator == nullptr) return no_communicator(comm);
    const Outcome state = communicator->state();
    if (state.failed()) report("ncclCommGetAsyncError", state);  // Callers ask for the text next.
    *error = state.code;
    return {};
  });
}

TUTTI_NCCL_API(ncclResult_t, CommCount, ncclComm_t comm, int* count) {
  return answer("ncclCommCount", comm, count,
                [](const Communicator& communicator) { return communicator.rank_config.ranks; });
}

TUTTI_NCCL_API(ncclResult_t, CommUserRank, ncclComm_t comm, int* rank) {
  return answer("ncclCommUserRank", comm, rank,
                [](const Communicator& communicator) { return communicator.rank_config.rank; });
}

TUTTI_NCCL_API(ncclResult_t, CommCuDevice, ncclComm_t comm, int* device) {
  return answer("ncclCommCuDevice", comm, device, device_of);
}

TUTTI_NCCL_API(ncclResult_t, CommMemStats, ncclComm_t comm, int statistic, std::uint64_t* value) {
  return guarded("ncclCommMemStats", [&] { return memory_of(comm, statistic, value); });
}

// The log level is read once, at the start.
TUTTI_NCCL_API(void, ResetDebugInit, void) {}
TUTTI_NCCL_EXPORT void ncclResetDebugInitInternal(void) {}

}  // namespace tutti::nccl
