// Output of `tutti estimate`.
#pragma once

#include <string>
#include <vector>

#include "tools/tutti/training_changes.h"

namespace tutti::tool {

struct Estimate {
  TrainingStep step;
  StepTimes times;
  std::vector<TrainingChange> changes;
  std::string ranks;  // "4 ranks with links of 10 Gbit/s".
  Rank rank_count = 0;
  std::vector<std::string> terms;  // Assumptions, one sentence each.
};

void print_text(const Estimate& estimate);
void print_json(const Estimate& estimate);

}  // namespace tutti::tool
