// A collective or message with all that it needs, so that it can run when its group ends: the program may have
// destroyed its reduction by then.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/nccl/abi.h"
#include "src/nccl/communicator.h"
#include "src/nccl/errors.h"
#include "tutti/tutti.h"

namespace tutti::nccl {

enum class Kind { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, gather, scatter, send, recv };

struct Call {
  Kind kind;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int reduction = ncclSum;  // As the program says it.
  int root = 0;             // Or the peer of a message.
  cudaStream_t stream = nullptr;
  // The rest is found out by check().
  Shared communicator = nullptr;
  std::optional<MadeReduction> made = {};
};

// Finds everything wrong that this rank can see, so that a group fails before any of it runs: what fails halfway takes
// its communicators with it.
Outcome check(Call& call);

Outcome launch(const Call& call);
Outcome launch(const std::vector<Call>& calls);  // Together.
// How long that is predicted to take; makes none of them.
Outcome simulate(const std::vector<Call>& calls, double& time_us);

tutti_type type_of(ncclDataType_t type);
std::size_t size_of(ncclDataType_t type);  // In bytes.

}  // namespace tutti::nccl
