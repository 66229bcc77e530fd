// NCCL's binary interface in own declarations: handles, structs, numbers. The functions are declared where they are
// defined (export.h). The tests compare these declarations with the real nccl.h, which is not needed to build.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace tutti::nccl {

// Programs never dereference handles. The handle of a communicator is a number (handles.h).
struct ncclComm;
using ncclComm_t = ncclComm*;
struct CUstream_st;
using cudaStream_t = CUstream_st*;
struct CUevent_st;
using cudaEvent_t = CUevent_st*;
// Only device code reads a window, and it needs an ncclDevComm, which does not exist here. Windows are therefore
// numbers.
struct ncclWindow_vidmem;
using ncclWindow_t = ncclWindow_vidmem*;

struct ncclUniqueId {  // Passed by value.
  char internal[128];
};

// Programs may pass any number, so the underlying types are fixed.
enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8  // NCCL 2.30 or later. Unused: ncclRemoteError is returned instead, which every client knows.
};

enum ncclDataType_t : int {
  ncclInt8 = 0,
  ncclUint8,
  ncclInt32,
  ncclUint32,
  ncclInt64,
  ncclUint64,
  ncclFloat16,
  ncclFloat32,
  ncclFloat64,
  ncclBfloat16,
  ncclFloat8e4m3,
  ncclFloat8e5m2,
  ncclNumTypes
};

// Values from ncclNumOps on denote reductions created by the program.
enum ncclRedOp_t : int { ncclSum = 0, ncclProd, ncclMax, ncclMin, ncclAvg, ncclNumOps, ncclMaxRedOp = INT_MAX };

enum ncclScalarResidence_t : int { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };

// Layout of 2.30.5. Older programs pass a prefix of `size` bytes, newer ones more.
struct ncclConfig_t {
  std::size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
  const char* commName;
  int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs;
  int nChannelsPerNetPeer, nvlinkCentricSched;  // Last fields of 2.28.
  int graphUsageMode, numRmaCtx;                // 2.29
  int maxP2pPeers;                              // 2.30
  int graphStreamOrdering;                      // 2.30.5
};
static_assert(sizeof(ncclConfig_t) == 96);

// Entry of a list of options of vendors.
struct ncclConfigExt_t {
  ncclConfigExt_t* next;
  struct {
    int vendorId, optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
};

// Configuration of one collective. Layout of 2.32; that of 2.31 ends before launchCompletionEvent.
struct ncclCollConfig_t {
  std::size_t size;
  unsigned magic, version;
  ncclConfigExt_t* ext;
  int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection, CTAPolicy;
  std::uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent;
};
static_assert(sizeof(ncclCollConfig_t) == 72);

struct ncclSimInfo_t {
  std::size_t size;
  unsigned magic, version;
  float estimatedTime;  // us
};

enum ncclCommMemStat_t : int {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended,
  ncclStatGpuMemPersist,
  ncclStatGpuMemTotal
};

// Ranks at equal distances: first, first + stride, ... Returned by value.
struct ncclTeam_t {
  int nRanks, rank, stride;
};

struct ncclMultimemHandle_t {  // Passed by value.
  void* base;
};

inline constexpr int kVersion = 22809;  // Version of NCCL's interface: 2.28.9.
inline constexpr unsigned kConfigMagic = 0xcafebeef;
inline constexpr unsigned kSimInfoMagic = 0x74685283;
inline constexpr int kUndefined = INT_MIN;  // Value of config fields that the program did not set.
inline constexpr int kNoColor = -1;
inline constexpr int kShrinkDefault = 0;
inline constexpr int kShrinkAbort = 1;
inline constexpr int kRevokeDefault = 0;
inline constexpr int kSuspendMemory = 1;  // NCCL_SUSPEND_MEM
inline constexpr float kNoTime = -1;

}  // namespace tutti::nccl
