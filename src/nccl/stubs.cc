// Functions that are exported, because programs do not start without them, but not implemented. Arguments are
// ignored; the caller cleans up. Each fails with an error text. A function that would take part in an open group
// makes the group fail.
#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {
namespace {

constexpr const char* kNoDeviceApi = "the device API is not implemented: call the collectives from the host";
constexpr const char* kNoGrow = "not implemented yet: create a new communicator of all ranks";
constexpr const char* kNoStatistics = "not implemented yet: use ncclCommCount, ncclCommUserRank and ncclCommCuDevice";
constexpr const char* kNoSignals = "one-sided communication is not implemented: use ncclSend and ncclRecv";
constexpr const char* kNoEncryption =
    "connections are authenticated, but not encrypted: use a private network, or one that encrypts";
constexpr const char* kNoParameters =
    "parameters of NCCL are not supported; Tutti reads the variables that `tutti doctor` lists";

}  // namespace

#define TUTTI_NCCL_STUB(Name, why)                                   \
  TUTTI_NCCL_API(ncclResult_t, Name, void) {                         \
    return guarded("nccl" #Name, [] { return invalid_usage(why); }); \
  }
#define TUTTI_NCCL_GROUPED_STUB(Name, why)                           \
  TUTTI_NCCL_API(ncclResult_t, Name, void) {                         \
    return grouped("nccl" #Name, [] { return invalid_usage(why); }); \
  }

TUTTI_NCCL_STUB(CommGetUniqueId, kNoGrow)
TUTTI_NCCL_GROUPED_STUB(CommGrow, kNoGrow)
TUTTI_NCCL_STUB(CommQueryProperties, kNoStatistics)

TUTTI_NCCL_GROUPED_STUB(PutSignal, kNoSignals)
TUTTI_NCCL_GROUPED_STUB(Signal, kNoSignals)
TUTTI_NCCL_GROUPED_STUB(WaitSignal, kNoSignals)

TUTTI_NCCL_GROUPED_STUB(DevCommCreate, kNoDeviceApi)
TUTTI_NCCL_STUB(DevCommDestroy, kNoDeviceApi)
TUTTI_NCCL_STUB(LsaBarrierCreateRequirement, kNoDeviceApi)
TUTTI_NCCL_STUB(GinBarrierCreateRequirement, kNoDeviceApi)
TUTTI_NCCL_STUB(LLA2ACreateRequirement, kNoDeviceApi)
TUTTI_NCCL_STUB(GinInboxA2ACreateRequirement, kNoDeviceApi)
TUTTI_NCCL_STUB(GinOutboxCreateRequirement, kNoDeviceApi)
TUTTI_NCCL_STUB(GetLsaDevicePointer, kNoDeviceApi)
TUTTI_NCCL_STUB(GetPeerDevicePointer, kNoDeviceApi)
TUTTI_NCCL_STUB(GetMultimemDevicePointer, kNoDeviceApi)
TUTTI_NCCL_STUB(GetLsaMultimemDevicePointer, kNoDeviceApi)

TUTTI_NCCL_STUB(GetPeerDeviceLeInfo, kNoDeviceApi)
TUTTI_NCCL_STUB(GetCftDeviceLeInfo, kNoDeviceApi)
TUTTI_NCCL_STUB(GetMultimemDeviceLeInfo, kNoDeviceApi)

TUTTI_NCCL_STUB(SetEncryption, kNoEncryption)

TUTTI_NCCL_STUB(ParamBind, kNoParameters)
TUTTI_NCCL_STUB(ParamGet, kNoParameters)
TUTTI_NCCL_STUB(ParamGetI8, kNoParameters)
TUTTI_NCCL_STUB(ParamGetI16, kNoParameters)
TUTTI_NCCL_STUB(ParamGetI32, kNoParameters)
TUTTI_NCCL_STUB(ParamGetI64, kNoParameters)
TUTTI_NCCL_STUB(ParamGetU8, kNoParameters)
TUTTI_NCCL_STUB(ParamGetU16, kNoParameters)
TUTTI_NCCL_STUB(ParamGetU32, kNoParameters)
TUTTI_NCCL_STUB(ParamGetU64, kNoParameters)
TUTTI_NCCL_STUB(ParamGetStr, kNoParameters)
TUTTI_NCCL_STUB(ParamGetParameter, kNoParameters)
TUTTI_NCCL_STUB(ParamGetAllParameterKeys, kNoParameters)
TUTTI_NCCL_STUB(ParamDumpAll, kNoParameters)

// No slots: there is nothing to put into them.
TUTTI_NCCL_API(int, LLA2ACalcSlots, int, int) { return 0; }

}  // namespace tutti::nccl
