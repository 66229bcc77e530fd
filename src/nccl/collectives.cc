// Collectives and messages.
#include "src/nccl/call_config.h"
#include "src/nccl/calls.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {

ncclResult_t enter(const char* function, Call call, ncclComm_t comm, const ncclCollConfig_t* config) {
  return grouped(function, [&]() -> Outcome {
    TUTTI_NCCL_CHECK(find_ready(comm, call.communicator));
    TUTTI_NCCL_CHECK(check(call));
    if (config != nullptr) TUTTI_NCCL_CHECK(configure(call, *config));
    return submit(std::move(call));
  });
}

TUTTI_NCCL_API(ncclResult_t, AllReduce, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclAllReduce",
               {.kind = Kind::all_reduce,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .reduction = op,
                .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, ReduceScatter, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclReduceScatter",
               {.kind = Kind::reduce_scatter,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .reduction = op,
                .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, Reduce, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclReduce",
               {.kind = Kind::reduce,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .reduction = op,
                .root = root,
                .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, Broadcast, const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclBroadcast",
               {.kind = Kind::broadcast,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .root = root,
                .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, Bcast, void* buffer, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
               cudaStream_t stream) {
  return enter("ncclBcast",
               {.kind = Kind::broadcast,
                .send = buffer,
                .recv = buffer,
                .count = count,
                .type = type,
                .root = root,
                .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, AllGather, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclAllGather",
               {.kind = Kind::all_gather, .send = send, .recv = recv, .count = count, .type = type, .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, AlltoAll, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclAlltoAll",
               {.kind = Kind::all_to_all, .send = send, .recv = recv, .count = count, .type = type, .stream = stream},
               comm);
}

TUTTI_NCCL_API(ncclResult_t, Gather, const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  return enter(
      "ncclGather",
      {.kind = Kind::gather, .send = send, .recv = recv, .count = count, .type = type, .root = root, .stream = stream},
      comm);
}

TUTTI_NCCL_API(ncclResult_t, Scatter, const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  return enter(
      "ncclScatter",
      {.kind = Kind::scatter, .send = send, .recv = recv, .count = count, .type = type, .root = root, .stream = stream},
      comm);
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
