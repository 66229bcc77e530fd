// Stand-in for NVIDIA's libnccl.so.2: records calls, and communicates with nobody. Macros select what it lacks:
//   STAND_IN_VERSION     its version
//   STAND_IN_WITHOUT_INIT, STAND_IN_WITHOUT_SIGNAL
#include "tests/nccl/fallback/stand_in.h"

#include <cstring>

#include "src/nccl/abi.h"

using namespace tutti::nccl;
using tutti::test::StandInNccl;

namespace {

StandInNccl& recorder() {
  static StandInNccl& made = *new StandInNccl;
  return made;
}

struct Comm {
  int rank, ranks, polls;
};

ncclResult_t recorded(const std::string& call) {
  recorder().record(call);
  return ncclSuccess;
}

ncclResult_t recorded(const char* function, ncclComm_t comm) {
  return recorded(std::string(function) + " " + std::to_string(reinterpret_cast<Comm*>(comm)->rank));
}

}  // namespace

extern "C" {

StandInNccl* stand_in_record() { return &recorder(); }

ncclResult_t ncclGetVersion(int* version) {
  *version = STAND_IN_VERSION;
  return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) { return "the stand-in fails"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 'i', sizeof id->internal);
  return recorded("id");
}

#ifndef STAND_IN_WITHOUT_INIT
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  recorder().record("init " + std::to_string(rank) + " of " + std::to_string(ranks));
  if (id.internal[0] != 'i' || id.internal[127] != 'i') return ncclInvalidArgument;
  const int polls = recorder().polls;
  if (polls == 0 && rank == recorder().failing_rank) return ncclSystemError;
  *comm = reinterpret_cast<ncclComm_t>(new Comm{rank, ranks, polls});
  return polls == 0 ? ncclSuccess : ncclInProgress;
}
#endif

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  auto& [rank, ranks, polls] = *reinterpret_cast<Comm*>(comm);
  if (polls > 0) --polls;
  *result = polls != 0 ? ncclInProgress : rank == recorder().failing_rank ? ncclSystemError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return recorded("finalize", comm); }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  recorded("destroy", comm);
  delete reinterpret_cast<Comm*>(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  recorded("abort", comm);
  delete reinterpret_cast<Comm*>(comm);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() { return recorded("group start"); }
ncclResult_t ncclGroupEnd() { return recorded("group end"); }
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  return recorded(info != nullptr && info->magic == kSimInfoMagic ? "group simulated" : "group end");
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, int* ranks) {
  *ranks = reinterpret_cast<Comm*>(comm)->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, std::size_t, ncclWindow_t* window, int) {
  *window = reinterpret_cast<ncclWindow_t>(memory);
  return recorded("window", comm);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) { return recorded("no window", comm); }

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void*) { return recorded("no devcomm", comm); }

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, std::size_t offset, int, void** pointer) {
  *pointer = reinterpret_cast<char*>(window) + offset;
  return ncclSuccess;
}

ncclTeam_t ncclTeamLsa(ncclComm_t comm) {
  return {reinterpret_cast<Comm*>(comm)->ranks, reinterpret_cast<Comm*>(comm)->rank, 1};
}

#ifndef STAND_IN_WITHOUT_SIGNAL
ncclResult_t ncclSignal(int peer, int, int, unsigned flags, ncclComm_t comm, cudaStream_t) {
  if (flags != 0) return ncclInvalidArgument;
  return recorded(("signal " + std::to_string(peer) + " from").c_str(), comm);
}

ncclResult_t ncclPutSignal(const void* local, std::size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                           std::size_t offset, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t) {
  const bool same = reinterpret_cast<const void*>(window) == local && count == 11 && type == ncclInt32 &&
                    offset == 12 && signal == 13 && context == 14 && flags == 15U;
  return recorded((std::string(same ? "" : "wrong ") + "put " + std::to_string(peer) + " from").c_str(), comm);
}
#endif

}  // extern "C"
