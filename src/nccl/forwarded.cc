// Functions that are not implemented, but run in the fallback library if there is one (fallback.h): one-sided calls,
// the device API on the host, and properties of communicators.
#include "src/nccl/export.h"
#include "src/nccl/forward.h"

namespace tutti::nccl {
namespace {

constexpr const char* kDeviceApiElsewhere = "the device API is not implemented: call the collectives from the host, or";
constexpr const char* kNoSignals = "one-sided communication is not implemented: use ncclSend and ncclRecv, or";
constexpr const char* kNoProperties =
    "properties are not implemented: use ncclCommCount, ncclCommUserRank and ncclCommCuDevice, or";

}  // namespace

// For the functions of fixed arguments below: the function of the same type in the other library.
#define TUTTI_NCCL_FORWARD(Name, why, ...) \
  guarded("nccl" #Name, [&] { return forward_to_library<decltype(pnccl##Name)>({"nccl" #Name, why}, __VA_ARGS__); })
#define TUTTI_NCCL_FORWARD_COMM(Name, use, why, comm, ...) \
  forward<decltype(pnccl##Name)>(                          \
      {"nccl" #Name, why, use}, comm,                      \
      [&](decltype(pnccl##Name)* function, ncclComm_t there) { return function(__VA_ARGS__); })

TUTTI_NCCL_API(ncclResult_t, PutSignal, const void* local, std::size_t count, ncclDataType_t type, int peer,
               ncclWindow_t window, std::size_t offset, int signal, int context, unsigned flags, ncclComm_t comm,
               cudaStream_t stream) {
  return grouped("ncclPutSignal", [&] {
    return TUTTI_NCCL_FORWARD_COMM(PutSignal, Use::call, kNoSignals, comm, local, count, type, peer, window, offset,
                                   signal, context, flags, there, stream);
  });
}

TUTTI_NCCL_API(ncclResult_t, Signal, int peer, int signal, int context, unsigned flags, ncclComm_t comm,
               cudaStream_t stream) {
  return grouped("ncclSignal", [&] {
    return TUTTI_NCCL_FORWARD_COMM(Signal, Use::call, kNoSignals, comm, peer, signal, context, flags, there, stream);
  });
}

TUTTI_NCCL_API(ncclResult_t, WaitSignal, int count, void* descriptions, ncclComm_t comm, cudaStream_t stream) {
  return grouped("ncclWaitSignal", [&] {
    return TUTTI_NCCL_FORWARD_COMM(WaitSignal, Use::call, kNoSignals, comm, count, descriptions, there, stream);
  });
}

TUTTI_NCCL_API(ncclResult_t, DevCommCreate, ncclComm_t comm, const void* requirements, void* made) {
  return grouped("ncclDevCommCreate", [&] {
    return TUTTI_NCCL_FORWARD_COMM(DevCommCreate, Use::call, kDeviceApiElsewhere, comm, there, requirements, made);
  });
}

TUTTI_NCCL_API(ncclResult_t, DevCommDestroy, ncclComm_t comm, const void* made) {
  return guarded("ncclDevCommDestroy", [&] {
    return TUTTI_NCCL_FORWARD_COMM(DevCommDestroy, Use::cleanup, kDeviceApiElsewhere, comm, there, made);
  });
}

TUTTI_NCCL_API(ncclResult_t, CommQueryProperties, ncclComm_t comm, void* properties) {
  return guarded("ncclCommQueryProperties", [&] {
    return TUTTI_NCCL_FORWARD_COMM(CommQueryProperties, Use::query, kNoProperties, comm, there, properties);
  });
}

TUTTI_NCCL_API(ncclResult_t, GinBarrierCreateRequirement, ncclComm_t comm, ncclTeam_t team, int count, void* handle,
               void* requirement) {
  return guarded("ncclGinBarrierCreateRequirement", [&] {
    return TUTTI_NCCL_FORWARD_COMM(GinBarrierCreateRequirement, Use::query, kDeviceApiElsewhere, comm, there, team,
                                   count, handle, requirement);
  });
}

TUTTI_NCCL_API(ncclResult_t, LsaBarrierCreateRequirement, ncclTeam_t team, int count, void* handle, void* requirement) {
  return TUTTI_NCCL_FORWARD(LsaBarrierCreateRequirement, kDeviceApiElsewhere, team, count, handle, requirement);
}

TUTTI_NCCL_API(ncclResult_t, LLA2ACreateRequirement, int blocks, int slots, void* handle, void* requirement) {
  return TUTTI_NCCL_FORWARD(LLA2ACreateRequirement, kDeviceApiElsewhere, blocks, slots, handle, requirement);
}

TUTTI_NCCL_API(ncclResult_t, GinInboxA2ACreateRequirement, ncclTeam_t peers, int blocks, int log2_size, void* handle,
               void* requirement) {
  return TUTTI_NCCL_FORWARD(GinInboxA2ACreateRequirement, kDeviceApiElsewhere, peers, blocks, log2_size, handle,
                            requirement);
}

TUTTI_NCCL_API(ncclResult_t, GinOutboxCreateRequirement, int blocks, int log2_size, void* handle, void* requirement) {
  return TUTTI_NCCL_FORWARD(GinOutboxCreateRequirement, kDeviceApiElsewhere, blocks, log2_size, handle, requirement);
}

TUTTI_NCCL_API(ncclResult_t, GetLsaDevicePointer, ncclWindow_t window, std::size_t offset, int rank, void** pointer) {
  return TUTTI_NCCL_FORWARD(GetLsaDevicePointer, kDeviceApiElsewhere, window, offset, rank, pointer);
}

TUTTI_NCCL_API(ncclResult_t, GetPeerDevicePointer, ncclWindow_t window, std::size_t offset, int peer, void** pointer) {
  return TUTTI_NCCL_FORWARD(GetPeerDevicePointer, kDeviceApiElsewhere, window, offset, peer, pointer);
}

TUTTI_NCCL_API(ncclResult_t, GetMultimemDevicePointer, ncclWindow_t window, std::size_t offset,
               ncclMultimemHandle_t handle, void** pointer) {
  return TUTTI_NCCL_FORWARD(GetMultimemDevicePointer, kDeviceApiElsewhere, window, offset, handle, pointer);
}

TUTTI_NCCL_API(ncclResult_t, GetLsaMultimemDevicePointer, ncclWindow_t window, std::size_t offset, void** pointer) {
  return TUTTI_NCCL_FORWARD(GetLsaMultimemDevicePointer, kDeviceApiElsewhere, window, offset, pointer);
}

// Without a fallback library there are no slots, since there is nothing to put into them.
TUTTI_NCCL_API(int, LLA2ACalcSlots, int elements, int size) {
  FallbackLibrary* library = nullptr;
  int (*function)(int, int) = nullptr;
  const Outcome found = caught([&]() -> Outcome {
    TUTTI_NCCL_CHECK(FallbackLibrary::find(library));
    return library == nullptr ? Outcome() : library->get("ncclLLA2ACalcSlots", function);
  });
  return found.failed() || function == nullptr ? 0 : function(elements, size);
}

}  // namespace tutti::nccl
