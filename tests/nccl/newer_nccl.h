// Declarations of NCCL 2.29 to 2.32, for tests that are compiled with an older nccl.h. abi_test.cc compares them with
// NVIDIA's.
#pragma once

#include <nccl.h>

#include "src/nccl/abi.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 30, 0)
using tutti::nccl::ncclCommMemStat_t, tutti::nccl::ncclStatGpuMemPersist, tutti::nccl::ncclStatGpuMemSuspend,
    tutti::nccl::ncclStatGpuMemSuspended, tutti::nccl::ncclStatGpuMemTotal;
extern "C" ncclResult_t ncclWinGetUserPtr(ncclComm_t, ncclWindow_t, void**);
extern "C" ncclResult_t ncclCommMemStats(ncclComm_t, ncclCommMemStat_t, uint64_t*);
extern "C" ncclResult_t ncclCommSuspend(ncclComm_t, int);
extern "C" ncclResult_t ncclCommResume(ncclComm_t);
#define NCCL_SUSPEND_MEM 0x01
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 32, 0)
using ncclConfigExt_t = tutti::nccl::ncclConfigExt_t;
using ncclCollConfig_t = tutti::nccl::ncclCollConfig_t;
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 31, 0)
extern "C" {
ncclResult_t ncclAllReduceConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t,
                                 const ncclCollConfig_t*);
ncclResult_t ncclReduceScatterConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t,
                                     const ncclCollConfig_t*);
ncclResult_t ncclReduceConfig(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t,
                              const ncclCollConfig_t*);
ncclResult_t ncclBroadcastConfig(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                                 const ncclCollConfig_t*);
ncclResult_t ncclAllGatherConfig(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t,
                                 const ncclCollConfig_t*);
ncclResult_t ncclAlltoAllConfig(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t,
                                const ncclCollConfig_t*);
ncclResult_t ncclGatherConfig(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                              const ncclCollConfig_t*);
ncclResult_t ncclScatterConfig(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                               const ncclCollConfig_t*);
}
#endif

namespace tutti::test {

// Like NCCL_COLLCONFIG_INITIALIZER.
inline ncclCollConfig_t call_config() {
  ncclCollConfig_t config = {};
  config.size = sizeof config;
  config.magic = nccl::kConfigMagic;
  config.version = 23203;
  config.minCTAs = config.maxCTAs = config.nvlsCTAs = config.cgaClusterSize = config.CTAPolicy = NCCL_CONFIG_UNDEF_INT;
  config.forceAlgSelection = 1;
  return config;
}

}  // namespace tutti::test
