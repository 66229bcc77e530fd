// Reductions created by programs.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "src/nccl/calls.h"
#include "src/nccl/export.h"

namespace tutti::nccl {
namespace {

// Numbers are unique in the process, so a number is never valid for another communicator.
int next_number() {
  static std::atomic<int> next = ncclNumOps;
  return next++;
}

Outcome make(MadeReduction& made, void* scalar, ncclScalarResidence_t residence) {
  if (scalar == nullptr) return invalid_argument("scalar is NULL: pass one element of the datatype");
  if (made.type < 0 || made.type >= ncclNumTypes) {
    return invalid_argument("invalid datatype " + std::to_string(made.type) + "; pass ncclInt8 ... ncclFloat8e5m2");
  }
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate) {
    return invalid_argument("invalid residence " + std::to_string(residence) +
                            "; pass ncclScalarDevice or ncclScalarHostImmediate");
  }
  if (residence == ncclScalarHostImmediate) {
    std::memcpy(&made.scalar, scalar, size_of(made.type));
  } else {
    if (reinterpret_cast<std::uintptr_t>(scalar) % size_of(made.type) != 0) {
      return invalid_argument("scalar is not aligned to the " + std::to_string(size_of(made.type)) +
                              " bytes of an element");
    }
    made.memory = scalar;
  }
  made.number = next_number();
  return {};
}

}  // namespace

// `op` is declared as int*, because no enumerator of ncclRedOp_t has the new number.
TUTTI_NCCL_API(ncclResult_t, RedOpCreatePreMulSum, int* op, void* scalar, ncclDataType_t type,
               ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded("ncclRedOpCreatePreMulSum", [&]() -> Outcome {
    if (op == nullptr) return invalid_argument("op is NULL; pass a pointer to an ncclRedOp_t");
    Shared communicator;
    TUTTI_NCCL_CHECK(find_ready(comm, communicator));
    MadeReduction made = {.type = type};
    TUTTI_NCCL_CHECK(make(made, scalar, residence));
    communicator->reductions.push_back(made);
    *op = made.number;
    return {};
  });
}

TUTTI_NCCL_API(ncclResult_t, RedOpDestroy, int op, ncclComm_t comm) {
  return guarded("ncclRedOpDestroy", [&]() -> Outcome {
    const Shared communicator = find(comm);
    if (communicator == nullptr) return no_communicator(comm);
    if (std::erase_if(communicator->reductions, [&](const MadeReduction& made) { return made.number == op; }) == 1) {
      return {};
    }
    return invalid_argument(
        "op " + std::to_string(op) +
        " was not created for this communicator or was already destroyed; ncclSum ... ncclAvg must not be destroyed");
  });
}

}  // namespace tutti::nccl
