#include "src/communicator/host/prepared_calls.h"

#include <utility>
#include <vector>

#include "src/base/no_cancellation.h"
#include "src/communicator/planning/machine_name.h"
#include "src/communicator/planning/planning.h"

namespace tutti {

PreparedCalls::PreparedCalls(Membership& membership, CallPlanner& planner, RunStatistics& statistics)
    : membership_(membership),
      planner_(planner),
      statistics_(statistics),
      autotuning_(membership.options, membership.rank,
                  membership.rank == 0 ? machine_name(membership.options, membership.mesh.hosts()) : "") {}

Result<PreparedCall*> PreparedCalls::prepare(const Call& call, const CommunicatorOptions& options) {
  const CallKey key = planner_.key_of(call, options);
  Slot& slot = slots_[mix(key.count * 31 + key.shape * 7 + key.in_place + key.forced) % slots_.size()];
  if (slot == nullptr || !(slot->key == key)) {
    const NoCancellation until_prepared;
    membership_.board.show_cpus(membership_.rank);
    Slot fresh = TUTTI_TRY(autotunes(call, options) ? prepare_autotuning(call, options)
                                                    : planner_.prepare(call, options, nullptr));
    fresh->key = key;
    if (latest_ == slot.get()) latest_ = nullptr;
    slot = std::move(fresh);
  }
  if (slot->tuned != nullptr) {
    const NoCancellation until_prepared;
    return next_tried(slot, call, options);
  }
  latest_ = slot.get();
  show(*latest_);
  return latest_;
}

void PreparedCalls::show(const PreparedCall& prepared) const {
  statistics_.show_plan(prepared.ran_mapped ? prepared.mapped->plan : prepared.plan);
}

void PreparedCalls::show_ran(const PreparedCall& prepared) {
  if (latest_ == &prepared || prepared.tuned != nullptr) show(prepared);
}

// ---- Autotuned calls ----

bool PreparedCalls::autotunes(const Call& call, const CommunicatorOptions& options) const {
  return membership_.ranks > 1 && !membership_.options.has_plugin() && is_tunable(call, options) &&
         compression_request(call, options, membership_.ranks).compression == CompressionFormat::none;
}

Result<PreparedCalls::Slot> PreparedCalls::prepare_autotuning(const Call& call, const CommunicatorOptions& options) {
  Query query = TUTTI_TRY(planner_.query_for(call, options));
  const std::vector<Candidate> predicted = TUTTI_TRY(candidates(query));
  // Measurements do not decide about compression. With an error bound, the prediction does.
  if (predicted.empty() || predicted.front().choice.compression != CompressionFormat::none)
    return planner_.prepare(call, options, nullptr);
  query.mapped = !membership_.spans_hosts;
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  std::erase_if(all,
                [](const Candidate& candidate) { return candidate.choice.compression != CompressionFormat::none; });
  Autotuning::Class& tuned = autotuning_.class_of(query, std::move(all));
  const GivenChoices next = {tuned.through_lanes(), tuned.by_mapped()};
  if (tuned.settled()) return planner_.prepare(call, options, &next);
  auto being_tuned = std::make_unique<PreparedCall>();
  being_tuned->tuned = &tuned;
  return being_tuned;
}

// Once the class has settled, its result replaces the slot, and calls of this shape run like other calls.
Result<PreparedCall*> PreparedCalls::next_tried(Slot& slot, const Call& call, const CommunicatorOptions& options) {
  Autotuning::Class& tuned = *slot->tuned;
  const GivenChoices next = {tuned.through_lanes(), tuned.by_mapped()};
  Slot& tried = slot->tried[next.names()];
  if (tried == nullptr) {
    tried = TUTTI_TRY(planner_.prepare(call, options, &next));
    tried->key = slot->key;
    tried->tuned = &tuned;
  }
  if (latest_ == slot.get()) latest_ = nullptr;
  show(*tried);
  if (!tuned.settled()) {
    latest_ = nullptr;
    return tried.get();
  }
  Slot kept = std::move(tried);
  kept->tuned = nullptr;
  slot = std::move(kept);
  latest_ = slot.get();
  return latest_;
}

}  // namespace tutti
