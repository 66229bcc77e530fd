// Single changes that may shorten a training step.
#pragma once

#include <string>
#include <vector>

#include "tools/tutti/training_step.h"

namespace tutti::tool {

inline constexpr double kWorthChanging = 0.01;  // Smallest gain that counts, as a part of the step time.

struct TrainingChange {
  std::string option;  // "--link 20Gbit".
  StepTimes times;
};

// Part of the time that the change saves, for equal amounts of computation.
double saved_by(const TrainingChange& change, const StepTimes& now);

// Returns the changes that apply to such a step, the most efficient first. Each differs from the step in one option:
// 16-bit gradients, int8 messages, twice the micro-batches, twice the bandwidth, the best size of buckets, or overlap.
// `now`: times of the step. The size of buckets is left out unless it saves kWorthChanging. Fails like step_times().
Result<std::vector<TrainingChange>> single_changes(const TrainingStep& step, const StepTimes& now,
                                                   const TrainingMachine& machine);

}  // namespace tutti::tool
