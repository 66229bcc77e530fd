// Collectives with a configuration of their own (NCCL 2.31).
#include "src/nccl/calls.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {

TUTTI_NCCL_API(ncclResult_t, AllReduceConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclAllReduceConfig", {Kind::all_reduce, send, recv, count, type, op, 0, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, ReduceScatterConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclReduceScatterConfig", {Kind::reduce_scatter, send, recv, count, type, op, 0, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, ReduceConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclReduceConfig", {Kind::reduce, send, recv, count, type, op, root, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, BroadcastConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclBroadcastConfig", {Kind::broadcast, send, recv, count, type, ncclSum, root, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, AllGatherConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclAllGatherConfig", {Kind::all_gather, send, recv, count, type, ncclSum, 0, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, AlltoAllConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclAlltoAllConfig", {Kind::all_to_all, send, recv, count, type, ncclSum, 0, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, GatherConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclGatherConfig", {Kind::gather, send, recv, count, type, ncclSum, root, stream}, comm, config);
}

TUTTI_NCCL_API(ncclResult_t, ScatterConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclScatterConfig", {Kind::scatter, send, recv, count, type, ncclSum, root, stream}, comm, config);
}

}  // namespace tutti::nccl
