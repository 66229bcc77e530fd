// Functions that are exported, because programs do not start without them, but not implemented. Arguments are
// ignored; the caller cleans up. Each fails with an error text. A function that would take part in an open group
// makes the group fail.
#include "src/nccl/export.h"
#include "src/nccl/groups.h"

namespace tutti::nccl {
namespace {

constexpr const char* kNoDeviceApi = "the device API is not implemented: call the collectives from the host";
constexpr const char* kNoGrow = "not implemented yet: create a new communicator of all ranks";
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

}  // namespace tutti::nccl
