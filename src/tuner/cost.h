// Predicted time of a call: the algorithm's cost_law, in bytes, on a machine model.
#pragma once

#include <cstdint>

#include "src/base/protocol.h"
#include "src/base/types.h"
#include "src/model/machine.h"
#include "src/plan/cost_law.h"
#include "src/tuner/coding.h"

namespace tutti {

// Components in microseconds. Messages are in transit while others are prepared, so links and work overlap, and the
// larger one counts.
struct Prediction {
  double launch_us = 0;  // Until the call begins.
  double hops_us = 0;    // Latency of dependent messages.
  double links_us = 0;   // Busiest link.
  double work_us = 0;    // Busiest rank: sending, receiving, copies and sums.

  double total_us() const { return launch_us + hops_us + (links_us > work_us ? links_us : work_us); }
};

// Parameters of compression, besides message sizes.
struct Coding {
  CompressionFormat compression = CompressionFormat::none;
  DataType type = DataType::float32;  // Type of the elements in memory.
  double values_bytes = 0;            // Bytes of a block as float32, the type of sums.
  CodecWork blocks;
};

struct Load {
  double block_bytes = 0;  // In messages.
  Protocol protocol = Protocol::simple;
  double chunk_bytes = 1;  // Maximum message size.
  std::uint32_t channels = 1;
  // Machine level that corresponds to levels[0] of the cost_law: 1 if every rank is alone on its host.
  std::size_t level = 0;
  bool overlaps = true;      // A chunk begins before the previous one ends.
  bool rooted = false;       // Ranks do not wait for the whole chain, so consecutive calls are pipelined.
  double ranks = 2;          // rooted: number of ranks.
  double copied = 0;         // rooted: blocks that the root copies with any algorithm.
  double exchange_hops = 0;  // Hops until all ranks know all buffer addresses.
  Coding coding = {};        // Without compression, messages have the size of the memory.
};

Prediction predict(const CostLaw& cost_law, const Load& load, const Machine& machine);

}  // namespace tutti
