#include "tools/tutti/training_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/tuner/candidates.h"

namespace tutti::tool {
namespace {

struct CallCost {
  std::string algorithm;
  double us = 0;
  double sent_bytes = 0;
  bool limited_by_work = false;
};

// Cost of the all-reduce of `elements` gradients.
Result<CallCost> all_reduce_cost(double elements, const TrainingStep& step, const TrainingMachine& machine) {
  Query query = machine.query;
  query.block_bytes = static_cast<std::uint64_t>(elements) * size_of(step.type);
  query.type = step.type;
  query.compression = step.compression;
  if (query.compression != CompressionFormat::none && message_bytes(query, query.compression) >= query.block_bytes)
    query.compression = CompressionFormat::none;  // Calls do the same.
  query.catalogue = catalogue(Collective::all_reduce);
  query.machine = &machine.machine;
  std::vector<Candidate> found = TUTTI_TRY(candidates(query));
  if (found.empty()) return unsupported("no algorithm for " + describe(query.problem));
  found.erase(found.begin() + 1, found.end());
  if (machine.model) TUTTI_CHECK_OK(simulate_candidates(*machine.model, query, found));
  const Candidate& chosen = found.front();
  if (chosen.predicted_us == 0)
    return unsupported("simulating " + std::string(chosen.choice.algorithm) + " for " +
                       std::to_string(query.problem.ranks) + " ranks takes too long; reduce --hosts");
  const CostLaw law = find(Collective::all_reduce, chosen.choice.algorithm)->cost_law(query.problem);
  double blocks = 0;
  for (const Traffic& level : law.levels) blocks += level.sent;
  return CallCost{.algorithm = std::string(chosen.choice.algorithm) + "/" + name(chosen.choice.protocol),
                  .us = chosen.predicted_us,
                  .sent_bytes = blocks * static_cast<double>(message_bytes(query, chosen.choice.compression)),
                  .limited_by_work = !machine.model && chosen.parts.work_us > chosen.parts.links_us};
}

// Buckets in the order in which they become ready. All but the last have the same size.
struct Buckets {
  double count = 1;
  double full_elements = 0, last_elements = 0;
};

Result<Buckets> buckets_of(const TrainingStep& step) {
  const double capacity = std::floor(step.bucket_bytes / static_cast<double>(size_of(step.type)));
  const double count = capacity < 1 ? INFINITY : std::ceil(step.parameters / capacity);
  if (count > kMaxBuckets)
    return invalid_argument("buckets of " + std::to_string(static_cast<std::uint64_t>(step.bucket_bytes)) +
                            " bytes: there would be more than " + std::to_string(kMaxBuckets) +
                            " buckets; use a larger --bucket");
  return Buckets{count, std::min(capacity, step.parameters), step.parameters - (count - 1) * capacity};
}

// Time from the end of the computation to the end of the last bucket.
double exposed_us(const Buckets& buckets, double full_us, double last_us, const TrainingStep& step) {
  const double backward_us = kBackwardPart * step.compute_us;
  double now_us = 0;  // Since the backward pass began.
  double ready = 0;
  for (double i = 0; i < buckets.count; ++i) {
    const bool is_last = i + 1 == buckets.count;
    ready += is_last ? buckets.last_elements : buckets.full_elements;
    now_us = std::max(now_us, backward_us * ready / step.parameters) + (is_last ? last_us : full_us);
  }
  return now_us - backward_us;
}

}  // namespace

Result<StepTimes> step_times(const TrainingStep& step, const TrainingMachine& machine) {
  const Buckets buckets = TUTTI_TRY(buckets_of(step));
  const CallCost full = TUTTI_TRY(all_reduce_cost(buckets.full_elements, step, machine));
  const bool even = buckets.last_elements == buckets.full_elements;
  const CallCost last = even ? full : TUTTI_TRY(all_reduce_cost(buckets.last_elements, step, machine));
  StepTimes times;
  times.gradient_bytes = step.parameters * static_cast<double>(size_of(step.type));
  times.buckets = buckets.count;
  times.algorithm = full.algorithm;
  times.limited_by_work = full.limited_by_work;
  times.sent_bytes = (buckets.count - 1) * full.sent_bytes + last.sent_bytes;
  times.compute_us = step.accumulate * step.compute_us;
  times.communication_us = (buckets.count - 1) * full.us + last.us;
  times.hidden_us = step.overlap ? std::min(*step.overlap * times.communication_us, kBackwardPart * step.compute_us)
                                 : times.communication_us - exposed_us(buckets, full.us, last.us, step);
  return times;
}

}  // namespace tutti::tool
