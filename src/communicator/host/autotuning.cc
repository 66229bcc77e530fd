#include "src/communicator/host/autotuning.h"

#include <algorithm>

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

Autotuning::Autotuning(const CommunicatorOptions& options, Rank rank, std::string machine)
    : rank_(rank), saved_(options, rank, std::move(machine)) {}

const Choice& Autotuning::Class::through_lanes() const {
  const bool tried = mapped && !mapped->autotuner.settled() && !mapped->next().mapped;
  return tried ? mapped->next() : lanes.next();
}

// Ends autotuning of one kind of calls with the predicted choice, if the other kind has settled and calls of this kind
// no longer occur.
TuningClass* Autotuning::Class::took(bool ran_mapped, std::int64_t duration_ns) {
  const bool requested = by_mapped() != nullptr;
  const bool of_mapped = ran_mapped || (mapped && !mapped->autotuner.settled() && !requested);
  TuningClass& tuning = of_mapped ? *mapped : lanes;
  if (tuning.autotuner.took(duration_ns)) return &tuning;
  if (!requested) return nullptr;
  alike = ran_mapped == was_mapped ? alike + 1 : 1;
  was_mapped = ran_mapped;
  TuningClass& other = ran_mapped ? lanes : *mapped;
  if (alike >= kMaxAlike && tuning.autotuner.settled() && !other.autotuner.settled()) {
    other.autotuner.give_up();
    stop_asking();
  }
  return nullptr;
}

void Autotuning::Class::conclude(TuningClass& tuning, std::span<const std::uint64_t> sums_ns, Rank ranks) {
  tuning.autotuner.conclude(sums_ns, ranks);
  stop_asking();
}

void Autotuning::Class::stop_asking() {
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

Autotuning::Class& Autotuning::class_of(const Query& query, std::vector<Candidate> candidates) {
  TUTTI_ASSERT(!candidates.empty());
  const Collective collective = query.problem.collective;
  const std::uint32_t size = size_class(query.block_bytes);
  const std::pair<std::uint32_t, std::uint32_t> key = {
      static_cast<std::uint32_t>(collective) * SavedTuning::kSizeClasses + size, code_of(candidates)};
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const bool oversubscribed = query.machine != nullptr && query.machine->ranks_per_core > 1;
  const AutotunerOptions terms = autotuner_options(has_root(collective), oversubscribed);
  std::vector<Candidate> through_lanes = candidates;
  std::erase_if(through_lanes, is_mapped);
  Class& made = classes_.emplace(key, Class{collective, size, tuning_class_of(std::move(through_lanes), terms), {}})
                    .first->second;
  saved_.settle(made.calls_of(made.lanes), made.lanes);
  made.mapped = tuning_class_of(std::move(candidates), terms);
  saved_.settle(made.calls_of(*made.mapped), *made.mapped);
  made.stop_asking();
  if (!may_map(*made.mapped)) made.mapped.reset();
  return made;
}

void Autotuning::write() const {
  std::vector<TunedClass> classes;
  for (const auto& [key, tuned] : classes_) {
    if (tuned.lanes.measured()) classes.push_back(tuned_of(tuned.calls_of(tuned.lanes), tuned.lanes));
    if (tuned.mapped && tuned.mapped->measured())
      classes.push_back(tuned_of(tuned.calls_of(*tuned.mapped), *tuned.mapped));
  }
  saved_.write(std::move(classes));
}

void Autotuning::report(const Class& tuned, const TuningClass& tuning) const {
  if (rank_ == 0 && tuning.autotuner.settled()) tutti::report(tuned.calls_of(tuning), tuning);
}

}  // namespace tutti
