// What NCCL's binary interface is made of, in our own words: handles, structs, numbers. The functions are declared
// where they are defined (door.h). The tests hold this against the real nccl.h; nothing of it is needed to build.
#pragma once

#include <climits>
#include <cstddef>

namespace tutti::nccl {

// Handles are never dereferenced by programs. ncclComm is a slot of our table (handles.h).
struct ncclComm;
using ncclComm_t = ncclComm*;
struct CUstream_st;
using cudaStream_t = CUstream_st*;
// Only device code looks into a window, and for that it needs an ncclDevComm, which we do not make. Ours are numbers.
struct ncclWindow_vidmem;
using ncclWindow_t = ncclWindow_vidmem*;

struct ncclUniqueId {  // Passed by value.
  char internal[128];
};

// Programs pass what they like, so enumerations may hold any number.
enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8  // From 2.30 on. We return ncclRemoteError instead, which every client knows.
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

// From ncclNumOps on: reductions that programs make.
enum ncclRedOp_t : int { ncclSum = 0, ncclProd, ncclMax, ncclMin, ncclAvg, ncclNumOps, ncclMaxRedOp = INT_MAX };

enum ncclScalarResidence_t : int { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };

// As of 2.30.5. Older programs pass the first `size` bytes of it, newer ones more.
struct ncclConfig_t {
  std::size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
  const char* commName;
  int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs;
  int nChannelsPerNetPeer, nvlinkCentricSched;  // The last of 2.28.
  int graphUsageMode, numRmaCtx;                // 2.29
  int maxP2pPeers;                              // 2.30
  int graphStreamOrdering;                      // 2.30.5
};
static_assert(sizeof(ncclConfig_t) == 96);

struct ncclSimInfo_t {
  std::size_t size;
  unsigned magic, version;
  float estimatedTime;  // us
};

// Ranks at equal distances: first, first + stride, ... Returned by value.
struct ncclTeam_t {
  int nRanks, rank, stride;
};

inline constexpr int kVersion = 22809;  // Version of NCCL's interface that is served: 2.28.9.
inline constexpr unsigned kConfigMagic = 0xcafebeef;
inline constexpr unsigned kSimInfoMagic = 0x74685283;
inline constexpr int kUndefined = INT_MIN;  // A field of a config that the program left alone.
inline constexpr int kNoColor = -1;
inline constexpr int kShrinkDefault = 0;
inline constexpr int kShrinkAbort = 1;
inline constexpr float kNoTime = -1;

}  // namespace tutti::nccl
