// Compares the declarations of NCCL's interface in src/nccl/abi.h with NVIDIA's.
#include "src/nccl/abi.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>

namespace tutti::test {
namespace {

namespace ours = ::tutti::nccl;

static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId) && sizeof(::ncclUniqueId) == NCCL_UNIQUE_ID_BYTES);
static_assert(sizeof(ours::ncclResult_t) == sizeof(::ncclResult_t));
static_assert(sizeof(ours::ncclDataType_t) == sizeof(::ncclDataType_t));
static_assert(sizeof(ours::ncclRedOp_t) == sizeof(::ncclRedOp_t));
static_assert(sizeof(ours::ncclScalarResidence_t) == sizeof(::ncclScalarResidence_t));

#define SAME_NUMBER(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(::name))
SAME_NUMBER(ncclSuccess);
SAME_NUMBER(ncclUnhandledCudaError);
SAME_NUMBER(ncclSystemError);
SAME_NUMBER(ncclInternalError);
SAME_NUMBER(ncclInvalidArgument);
SAME_NUMBER(ncclInvalidUsage);
SAME_NUMBER(ncclRemoteError);
SAME_NUMBER(ncclInProgress);
SAME_NUMBER(ncclInt8);
SAME_NUMBER(ncclUint8);
SAME_NUMBER(ncclInt32);
SAME_NUMBER(ncclUint32);
SAME_NUMBER(ncclInt64);
SAME_NUMBER(ncclUint64);
SAME_NUMBER(ncclFloat16);
SAME_NUMBER(ncclFloat32);
SAME_NUMBER(ncclFloat64);
SAME_NUMBER(ncclBfloat16);
SAME_NUMBER(ncclFloat8e4m3);
SAME_NUMBER(ncclFloat8e5m2);
SAME_NUMBER(ncclNumTypes);
SAME_NUMBER(ncclSum);
SAME_NUMBER(ncclProd);
SAME_NUMBER(ncclMax);
SAME_NUMBER(ncclMin);
SAME_NUMBER(ncclAvg);
SAME_NUMBER(ncclNumOps);
SAME_NUMBER(ncclScalarDevice);
SAME_NUMBER(ncclScalarHostImmediate);
static_assert(ours::kUndefined == NCCL_CONFIG_UNDEF_INT && ours::kNoColor == NCCL_SPLIT_NOCOLOR);
static_assert(ours::kNoTime == NCCL_UNDEF_FLOAT);

// Versions append fields. src/nccl/abi.h declares that of 2.30.5, and accepts longer ones of later versions.
static_assert(sizeof(ours::ncclConfig_t) >= sizeof(::ncclConfig_t) || NCCL_VERSION_CODE > NCCL_VERSION(2, 30, 7));
#define SAME_FIELD(type, name)                                          \
  static_assert(offsetof(ours::type, name) == offsetof(::type, name) && \
                sizeof(ours::type::name) == sizeof(::type::name))
SAME_FIELD(ncclConfig_t, size);
SAME_FIELD(ncclConfig_t, magic);
SAME_FIELD(ncclConfig_t, version);
SAME_FIELD(ncclConfig_t, blocking);
SAME_FIELD(ncclConfig_t, cgaClusterSize);
SAME_FIELD(ncclConfig_t, minCTAs);
SAME_FIELD(ncclConfig_t, maxCTAs);
SAME_FIELD(ncclConfig_t, netName);
SAME_FIELD(ncclConfig_t, splitShare);
SAME_FIELD(ncclConfig_t, trafficClass);
SAME_FIELD(ncclConfig_t, commName);
SAME_FIELD(ncclConfig_t, collnetEnable);
SAME_FIELD(ncclConfig_t, CTAPolicy);
SAME_FIELD(ncclConfig_t, shrinkShare);
SAME_FIELD(ncclConfig_t, nvlsCTAs);
SAME_FIELD(ncclConfig_t, nChannelsPerNetPeer);
SAME_FIELD(ncclConfig_t, nvlinkCentricSched);
#if NCCL_VERSION_CODE >= 23005
SAME_FIELD(ncclConfig_t, graphUsageMode);
SAME_FIELD(ncclConfig_t, numRmaCtx);
SAME_FIELD(ncclConfig_t, maxP2pPeers);
SAME_FIELD(ncclConfig_t, graphStreamOrdering);
SAME_NUMBER(ncclTimeout);
SAME_NUMBER(ncclStatGpuMemSuspend);
SAME_NUMBER(ncclStatGpuMemSuspended);
SAME_NUMBER(ncclStatGpuMemPersist);
SAME_NUMBER(ncclStatGpuMemTotal);
static_assert(ours::kSuspendMemory == NCCL_SUSPEND_MEM);
#endif
#if NCCL_VERSION_CODE >= 23203
static_assert(sizeof(ours::ncclCollConfig_t) == sizeof(::ncclCollConfig_t));
static_assert(sizeof(ours::ncclConfigExt_t) == sizeof(::ncclConfigExt_t));
SAME_FIELD(ncclConfigExt_t, next);
SAME_FIELD(ncclConfigExt_t, key);
SAME_FIELD(ncclConfigExt_t, val);
SAME_FIELD(ncclCollConfig_t, magic);
SAME_FIELD(ncclCollConfig_t, version);
SAME_FIELD(ncclCollConfig_t, ext);
SAME_FIELD(ncclCollConfig_t, minCTAs);
SAME_FIELD(ncclCollConfig_t, maxCTAs);
SAME_FIELD(ncclCollConfig_t, nvlsCTAs);
SAME_FIELD(ncclCollConfig_t, cgaClusterSize);
SAME_FIELD(ncclCollConfig_t, algSelection);
SAME_FIELD(ncclCollConfig_t, forceAlgSelection);
SAME_FIELD(ncclCollConfig_t, CTAPolicy);
SAME_FIELD(ncclCollConfig_t, userProfilerTag);
SAME_FIELD(ncclCollConfig_t, launchCompletionEvent);
#endif
static_assert(sizeof(ours::ncclSimInfo_t) == sizeof(::ncclSimInfo_t));
static_assert(ours::kShrinkDefault == NCCL_SHRINK_DEFAULT && ours::kShrinkAbort == NCCL_SHRINK_ABORT);
SAME_FIELD(ncclSimInfo_t, magic);
SAME_FIELD(ncclSimInfo_t, version);
SAME_FIELD(ncclSimInfo_t, estimatedTime);

TEST(Abi, MatchesMagicsOfInitializers) {
  const ::ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  const ::ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(config.magic, ours::kConfigMagic);
  EXPECT_EQ(info.magic, ours::kSimInfoMagic);
}

TEST(Abi, ReportsFiveDigitVersion) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, NCCL_VERSION(2, 28, 9));
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
}

TEST(Abi, ExportsBothNamesOfEachFunction) {
  EXPECT_EQ(reinterpret_cast<void*>(ncclAllReduce), reinterpret_cast<void*>(pncclAllReduce));
  EXPECT_EQ(reinterpret_cast<void*>(ncclGroupEnd), reinterpret_cast<void*>(pncclGroupEnd));
}

TEST(Abi, NamesEveryResult) {
  for (int result = ncclSuccess; result <= ncclNumResults + 1; ++result) {
    EXPECT_STRNE(ncclGetErrorString(static_cast<ncclResult_t>(result)), "");
  }
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_STRNE(ncclGetErrorString(ncclInvalidUsage), ncclGetErrorString(ncclInvalidArgument));
}

}  // namespace
}  // namespace tutti::test
