// Predicted time of a step of data-parallel training, whose gradients are averaged by all-reduces of buckets.
#pragma once

#include <optional>
#include <string>

#include "src/tuner/choose.h"
#include "tools/tutti/call_model.h"

namespace tutti::tool {

// Ranks and what connects them.
struct TrainingMachine {
  Query query;                     // All-reduce among the ranks, without size, type and compression.
  Machine machine;                 // Cost model of the tuner.
  std::optional<CallModel> model;  // Simulates calls instead, on a topology.
  double link_gbits_per_s = 0;     // Link of each rank; 0: those of the topology.
};

inline constexpr double kBucketBytesOfPyTorch = 25 << 20;
inline constexpr std::uint32_t kMaxBuckets = 1'000'000;
inline constexpr double kBackwardPart = 2.0 / 3;  // Backward pass, of the computation of a micro-batch.

struct TrainingStep {
  double parameters = 0;
  DataType type = DataType::float32;  // Element type of gradients.
  CompressionFormat compression = CompressionFormat::none;
  double bucket_bytes = kBucketBytesOfPyTorch;
  double compute_us = 0;          // Forward and backward pass of a micro-batch on one rank.
  std::uint32_t accumulate = 1;   // Micro-batches of a step.
  std::optional<double> overlap;  // Part of the communication that computation hides; empty: as buckets allow.
};

struct StepTimes {
  double gradient_bytes = 0;
  double buckets = 0;
  std::string algorithm;         // Algorithm and protocol of a full bucket.
  double sent_bytes = 0;         // Sent by the busiest rank.
  double compute_us = 0;         // All micro-batches.
  double communication_us = 0;   // All buckets.
  double hidden_us = 0;          // Communication during computation.
  bool limited_by_work = false;  // Work of a rank, not the link, limits the all-reduce of a full bucket.

  double exposed_us() const { return communication_us - hidden_us; }
  double step_us() const { return compute_us + exposed_us(); }
  double efficiency() const { return compute_us / step_us(); }
};

// Gradients become ready at a constant rate during the backward pass of the last micro-batch. Buckets are reduced one
// after the other, by the algorithm that the library chooses. Fails with invalid_argument if there are too many
// buckets, and with unsupported if no algorithm can run or its simulation would take too long.
Result<StepTimes> step_times(const TrainingStep& step, const TrainingMachine& machine);

}  // namespace tutti::tool
