// Output of `tutti explain` for a range of sizes, and its comparison with NCCL (--compare).
#pragma once

#include <string>
#include <vector>

#include "tools/tutti/call_model.h"

namespace tutti::tool {

struct SizesRequest {
  Query query;                // block_bytes is that of each size in turn.
  std::vector<double> sizes;  // Bytes of a block.
  bool compares = false;      // With NCCL.
  bool json = false;
  std::string topology, environment;  // Name, and sentences about variables that have an effect.
};

// Prints the choice of the library for each size, and its predicted time in a graph, as `tutti simulate` predicts it.
// Fails if a size has no candidate.
Status explain_sizes(const CallModel& model, const SizesRequest& request);

}  // namespace tutti::tool
