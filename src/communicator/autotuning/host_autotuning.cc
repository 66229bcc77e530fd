#include "src/communicator/autotuning/host_autotuning.h"

#include <algorithm>
#include <utility>

#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMaxAlike = 64;

bool is_mapped(const Candidate& candidate) { return candidate.choice.mapped; }

// Returns whether a mapped candidate may still win.
bool may_map(const TuningClass& tuning) {
  for (std::size_t i = 0; i < tuning.candidates.size(); ++i) {
    if (is_mapped(tuning.candidates[i]) && tuning.autotuner.tries(i)) return true;
  }
  return false;
}

}  // namespace

HostAutotuning::HostAutotuning(const CommunicatorOptions& options, Rank rank, std::string machine)
    : saved_(options, rank, std::move(machine)) {}

const Choice& HostAutotuning::Class::through_lanes() const {
  const bool tried = mapped && !mapped->autotuner.settled() && !mapped->next().mapped;
  return tried ? mapped->next() : lanes.next();
}

// Ends autotuning of one kind of calls with the predicted choice, if the other kind has settled and calls of this kind
// no longer occur.
TuningClass* HostAutotuning::Class::record(bool ran_mapped, std::int64_t duration_ns) {
  const bool requested = by_mapped() != nullptr;
  const bool of_mapped = ran_mapped || (mapped && !mapped->autotuner.settled() && !requested);
  TuningClass& tuning = of_mapped ? *mapped : lanes;
  if (tuning.autotuner.record(duration_ns)) return &tuning;
  if (!requested) return nullptr;
  alike = ran_mapped == was_mapped ? alike + 1 : 1;
  was_mapped = ran_mapped;
  TuningClass& other = ran_mapped ? lanes : *mapped;
  if (alike >= kMaxAlike && tuning.autotuner.settled() && !other.autotuner.settled()) {
    other.autotuner.give_up();
    drop_mapped_candidates();
  }
  return nullptr;
}

void HostAutotuning::Class::conclude(TuningClass& tuning, std::span<const std::uint64_t> sums_ns, Rank ranks) {
  tuning.autotuner.conclude(sums_ns, ranks);
  drop_mapped_candidates();
}

void HostAutotuning::Class::drop_mapped_candidates() {
  if (!mapped || !mapped->autotuner.settled() || mapped->next().mapped || lanes.autotuner.settled()) return;
  const Choice& won = mapped->next();
  for (std::size_t i = 0; i < lanes.candidates.size(); ++i) {
    const Choice& choice = lanes.candidates[i].choice;
    if (choice.algorithm != won.algorithm || choice.protocol != won.protocol) continue;
    lanes.autotuner.give_up();
    lanes.autotuner.settle(i);
    return;
  }
}

HostAutotuning::Class& HostAutotuning::class_of(const Query& query, std::vector<Candidate> candidates) {
  TUTTI_ASSERT(!candidates.empty());
  ClassOfCalls calls = {query.problem.collective, size_class(query.block_bytes)};
  const TuningKey key = tuning_key(calls, candidates);
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const bool oversubscribed = query.machine != nullptr && query.machine->ranks_per_core > 1;
  const AutotunerOptions terms = autotuner_options(has_root(calls.collective), oversubscribed);
  std::vector<Candidate> through_lanes = candidates;
  std::erase_if(through_lanes, is_mapped);
  Class& made = classes_.emplace(key, Class{TuningClass(calls, std::move(through_lanes), terms), {}}).first->second;
  saved_.settle(made.lanes);
  calls.mapped = true;
  made.mapped.emplace(calls, std::move(candidates), terms);
  saved_.settle(*made.mapped);
  made.drop_mapped_candidates();
  if (!may_map(*made.mapped)) made.mapped.reset();
  return made;
}

void HostAutotuning::write() const {
  std::vector<const TuningClass*> classes;
  for (const auto& [key, tuned] : classes_) {
    classes.push_back(&tuned.lanes);
    if (tuned.mapped) classes.push_back(&*tuned.mapped);
  }
  saved_.write(classes);
}

}  // namespace tutti
