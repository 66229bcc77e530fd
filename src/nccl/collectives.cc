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
  return enter("ncclAllReduce", {Kind::all_reduce, send, recv, count, type, op, 0, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, ReduceScatter, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclReduceScatter", {Kind::reduce_scatter, send, recv, count, type, op, 0, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Reduce, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclReduce", {Kind::reduce, send, recv, count, type, op, root, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Broadcast, const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclBroadcast", {Kind::broadcast, send, recv, count, type, ncclSum, root, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Bcast, void* buffer, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
               cudaStream_t stream) {
  return enter("ncclBcast", {Kind::broadcast, buffer, buffer, count, type, ncclSum, root, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, AllGather, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclAllGather", {Kind::all_gather, send, recv, count, type, ncclSum, 0, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, AlltoAll, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclAlltoAll", {Kind::all_to_all, send, recv, count, type, ncclSum, 0, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Gather, const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclGather", {Kind::gather, send, recv, count, type, ncclSum, root, stream}, comm);
}

TUTTI_NCCL_API(ncclResult_t, Scatter, const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  return enter("ncclScatter", {Kind::scatter, send, recv, count, type, ncclSum, root, stream}, comm);
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
