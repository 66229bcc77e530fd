// Collectives and messages.
#include "src/nccl/call_config.h"
#include "src/nccl/calls.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {

namespace {

// A null config leaves the call to the settings of the communicator.
ncclResult_t enter(const char* function, Call call, ncclComm_t comm, const ncclCollConfig_t* config = nullptr) {
  return grouped(function, [&]() -> Outcome {
    TUTTI_NCCL_CHECK(find_ready(comm, call.communicator));
    TUTTI_NCCL_CHECK(check(call));
    if (config != nullptr) TUTTI_NCCL_CHECK(configure(call, *config));
    return submit(std::move(call));
  });
}

}  // namespace

// Defines a collective, and its variant with a configuration (NCCL 2.31). The last arguments are the parameters between
// the data type and the communicator.
#define TUTTI_NCCL_COLLECTIVE(Name, kind, op, root, ...)                                                  \
  TUTTI_NCCL_API(ncclResult_t, Name, const void* send, void* recv, std::size_t count,                     \
                 ncclDataType_t type __VA_OPT__(, ) __VA_ARGS__, ncclComm_t comm, cudaStream_t stream) {  \
    return enter("nccl" #Name, {kind, send, recv, count, type, op, root, stream}, comm);                  \
  }                                                                                                       \
  TUTTI_NCCL_API(ncclResult_t, Name##Config, const void* send, void* recv, std::size_t count,             \
                 ncclDataType_t type __VA_OPT__(, ) __VA_ARGS__, ncclComm_t comm, cudaStream_t stream,    \
                 const ncclCollConfig_t* config) {                                                        \
    return enter("nccl" #Name "Config", {kind, send, recv, count, type, op, root, stream}, comm, config); \
  }

TUTTI_NCCL_COLLECTIVE(AllReduce, Kind::all_reduce, op, 0, ncclRedOp_t op)
TUTTI_NCCL_COLLECTIVE(ReduceScatter, Kind::reduce_scatter, op, 0, ncclRedOp_t op)
TUTTI_NCCL_COLLECTIVE(Reduce, Kind::reduce, op, root, ncclRedOp_t op, int root)
TUTTI_NCCL_COLLECTIVE(Broadcast, Kind::broadcast, ncclSum, root, int root)
TUTTI_NCCL_COLLECTIVE(AllGather, Kind::all_gather, ncclSum, 0)
TUTTI_NCCL_COLLECTIVE(AlltoAll, Kind::all_to_all, ncclSum, 0)
TUTTI_NCCL_COLLECTIVE(Gather, Kind::gather, ncclSum, root, int root)
TUTTI_NCCL_COLLECTIVE(Scatter, Kind::scatter, ncclSum, root, int root)

TUTTI_NCCL_API(ncclResult_t, Bcast, void* buffer, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
               cudaStream_t stream) {
  return enter("ncclBcast", {Kind::broadcast, buffer, buffer, count, type, ncclSum, root, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Send, const void* send, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
               cudaStream_t stream) {
  return enter("ncclSend",
               {.kind = Kind::send, .send = send, .count = count, .type = type, .root = peer, .stream = stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Recv, void* recv, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
               cudaStream_t stream) {
  return enter("ncclRecv",
               {.kind = Kind::recv, .recv = recv, .count = count, .type = type, .root = peer, .stream = stream}, comm);
}

}  // namespace tutti::nccl
