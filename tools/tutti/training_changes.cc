#include "tools/tutti/training_changes.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/tutti/usual_machine.h"

namespace tutti::tool {
namespace {

struct NamedStep {
  std::string option;
  TrainingStep step;
};

// True if int8 messages are shorter than those of the step.
bool int8_shortens(const TrainingStep& step) {
  return is_compressible(step.type) && compressed_bytes(CompressionFormat::int8, kCompressionGroup, step.type) <
                                           compressed_bytes(step.compression, kCompressionGroup, step.type);
}

// Changes of the step, but not of buckets.
std::vector<NamedStep> changed_steps(const TrainingStep& step) {
  std::vector<NamedStep> all;
  if (size_of(step.type) > size_of(DataType::bfloat16) && step.compression == CompressionFormat::none) {
    all.push_back({"--type bfloat16", step});
    all.back().step.type = DataType::bfloat16;
  }
  if (int8_shortens(step)) {
    all.push_back({"--compress int8", step});
    all.back().step.compression = CompressionFormat::int8;
  }
  all.push_back({"--accumulate " + std::to_string(2 * step.accumulate), step});
  all.back().step.accumulate *= 2;
  if (step.overlap) {
    all.push_back({"no --overlap", step});
    all.back().step.overlap.reset();
  }
  return all;
}

// Bucket sizes to try: powers of two from 1 MiB to 256 MiB.
std::vector<NamedStep> steps_with_other_buckets(const TrainingStep& step) {
  std::vector<NamedStep> all;
  for (std::uint32_t mebibytes = 1; mebibytes <= 256; mebibytes *= 2) {
    all.push_back({"--bucket " + std::to_string(mebibytes) + "M", step});
    all.back().step.bucket_bytes = mebibytes * 1048576.0;
    if (step.parameters * static_cast<double>(size_of(step.type)) / all.back().step.bucket_bytes > kMaxBuckets)
      all.pop_back();
  }
  return all;
}

std::string link_option(double gbits_per_s) {
  char text[48];
  std::snprintf(text, sizeof text, "--link %.6gGbit", gbits_per_s);
  return text;
}

bool is_better(const TrainingChange& a, const TrainingChange& b) { return a.times.efficiency() > b.times.efficiency(); }

Result<std::vector<TrainingChange>> predict_all(const std::vector<NamedStep>& steps, const TrainingMachine& machine) {
  std::vector<TrainingChange> changes;
  for (const NamedStep& each : steps) changes.push_back({each.option, TUTTI_TRY(step_times(each.step, machine))});
  return changes;
}

}  // namespace

double saved_by(const TrainingChange& change, const StepTimes& now) {
  return 1 - now.efficiency() / change.times.efficiency();
}

Result<std::vector<TrainingChange>> single_changes(const TrainingStep& step, const StepTimes& now,
                                                   const TrainingMachine& machine) {
  std::vector<TrainingChange> changes = TUTTI_TRY(predict_all(changed_steps(step), machine));
  if (!machine.model) {
    TrainingMachine faster;
    faster.query = machine.query;
    faster.machine = machine.machine;
    faster.link_gbits_per_s = 2 * machine.link_gbits_per_s;
    set_link(faster.machine, faster.link_gbits_per_s);
    changes.push_back({link_option(faster.link_gbits_per_s), TUTTI_TRY(step_times(step, faster))});
  }
  std::vector<TrainingChange> sizes = TUTTI_TRY(predict_all(steps_with_other_buckets(step), machine));
  const auto best = std::min_element(sizes.begin(), sizes.end(), is_better);
  if (best != sizes.end() && saved_by(*best, now) >= kWorthChanging) changes.push_back(std::move(*best));
  std::stable_sort(changes.begin(), changes.end(), is_better);
  return changes;
}

}  // namespace tutti::tool
