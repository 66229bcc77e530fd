// Collectives with a configuration of their own (NCCL 2.31).
#include "src/nccl/calls.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {

TUTTI_NCCL_API(ncclResult_t, AllReduceConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclAllReduceConfig",
               {.kind = Kind::all_reduce,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .reduction = op,
                .stream = stream},
               comm, config);
}

TUTTI_NCCL_API(ncclResult_t, ReduceScatterConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclReduceScatterConfig",
               {.kind = Kind::reduce_scatter,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .reduction = op,
                .stream = stream},
               comm, config);
}

TUTTI_NCCL_API(ncclResult_t, ReduceConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclReduceConfig",
               {.kind = Kind::reduce,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .reduction = op,
                .root = root,
                .stream = stream},
               comm, config);
}

TUTTI_NCCL_API(ncclResult_t, BroadcastConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclBroadcastConfig",
               {.kind = Kind::broadcast,
                .send = send,
                .recv = recv,
                .count = count,
                .type = type,
                .root = root,
                .stream = stream},
               comm, config);
}

TUTTI_NCCL_API(ncclResult_t, AllGatherConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclAllGatherConfig",
               {.kind = Kind::all_gather, .send = send, .recv = recv, .count = count, .type = type, .stream = stream},
               comm, config);
}

TUTTI_NCCL_API(ncclResult_t, AlltoAllConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter("ncclAlltoAllConfig",
               {.kind = Kind::all_to_all, .send = send, .recv = recv, .count = count, .type = type, .stream = stream},
               comm, config);
}

TUTTI_NCCL_API(ncclResult_t, GatherConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter(
      "ncclGatherConfig",
      {.kind = Kind::gather, .send = send, .recv = recv, .count = count, .type = type, .root = root, .stream = stream},
      comm, config);
}

TUTTI_NCCL_API(ncclResult_t, ScatterConfig, const void* send, void* recv, std::size_t count, ncclDataType_t type,
               int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enter(
      "ncclScatterConfig",
      {.kind = Kind::scatter, .send = send, .recv = recv, .count = count, .type = type, .root = root, .stream = stream},
      comm, config);
}

}  // namespace tutti::nccl
