// How long a call is predicted to take: an algorithm's cost_law, times its bytes, on a machine.
#pragma once

#include <cstdint>

#include "src/base/protocol.h"
#include "src/base/types.h"
#include "src/model/machine.h"
#include "src/plan/cost_law.h"
#include "src/tuner/coding.h"

namespace tutti {

// In microseconds. Messages are under way while others are made, so links and work count as the longer of the two.
struct Prediction {
  double launch_us = 0;  // Until a call begins.
  double hops_us = 0;    // Messages that wait for each other, on their way.
  double links_us = 0;   // The busiest link.
  double work_us = 0;    // The busiest rank: messages made and taken in, copies and sums.

  double total_us() const { return launch_us + hops_us + (links_us > work_us ? links_us : work_us); }
};

// Of messages in a compression format, beside their bytes.
struct Coding {
  CompressionFormat compression = CompressionFormat::none;
  DataType type = DataType::float32;  // Of the elements in memory.
  double values_bytes = 0;            // Of a block in float32, in which sums are made.
  Compressed blocks;
};

struct Load {
  double block_bytes = 0;  // In messages.
  Protocol protocol = Protocol::simple;
  double chunk_bytes = 1;  // The longest message.
  std::uint32_t channels = 1;
  // The level of the machine at which levels[0] of the cost_law are: 1 where every rank is alone on its host.
  std::size_t level = 0;
  bool rooted = false;  // Nobody waits for the whole way: calls follow each other.
  double ranks = 2;     // Of such a call.
  double copied = 0;    // Blocks that its root copies, whatever the algorithm.
  double met = 0;       // Hops until all ranks know where the buffers of all are.
  Coding coding = {};   // Of none, messages have the bytes that memory has.
};

Prediction predict(const CostLaw& cost_law, const Load& load, const Machine& machine);

}  // namespace tutti
