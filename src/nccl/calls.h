// A collective or message with all its arguments, so that it can run when its group ends. The program may have
// destroyed its reduction by then.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include "src/base/nccl_settings.h"
#include "src/nccl/abi.h"
#include "src/nccl/communicator.h"
#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

enum class Kind { all_reduce, reduce_scatter, reduce, all_gather, broadcast, gather, scatter, all_to_all, send, recv };
static_assert(std::size(kNcclCollectives) == static_cast<std::size_t>(Kind::send));
inline const char* name_of(Kind kind) {
  return kind == Kind::send ? "send" : kind == Kind::recv ? "recv" : kNcclCollectives[static_cast<int>(kind)];
}

struct Call {
  Kind kind;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int reduction = ncclSum;  // Value from the program.
  int root = 0;             // Root, or peer of a message.
  cudaStream_t stream = nullptr;
  // The remaining members are set by check().
  Shared communicator = nullptr;
  std::optional<MadeReduction> made = {};
  tutti_comm handle = nullptr;  // Carries the call; null: chosen by the communicator's settings. Set by configure().
};

// Handle that carries the call.
tutti_comm handle_for(const Call& call);

// Checks all arguments that this rank can check, so that a group fails before any of its calls runs. A later failure
// breaks the communicators involved.
Outcome check(Call& call);

Outcome launch(const Call& call);
Outcome launch(const std::vector<Call>& calls);  // Runs the calls as one group.
// Predicts the time of the calls in microseconds, without running them.
Outcome simulate(const std::vector<Call>& calls, double& time_us);

tutti_type type_of(ncclDataType_t type);
std::size_t size_of(ncclDataType_t type);  // Element size in bytes.

}  // namespace tutti::nccl
