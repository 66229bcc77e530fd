#include "src/communicator/host/learning.h"

#include <algorithm>

#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMostAlike = 64;

bool is_mapped(const Candidate& candidate) { return candidate.choice.mapped; }

// Whether a mapped candidate is among those that may still come out.
bool may_map(const Learning::Contest& contest) {
  for (std::size_t i = 0; i < contest.candidates.size(); ++i) {
    if (is_mapped(contest.candidates[i]) && contest.trial.tries(i)) return true;
  }
  return false;
}

}  // namespace

Learning::Learning(const CommunicatorOptions& options, Rank rank, std::string place)
    : rank_(rank), kept_(options, rank, std::move(place)) {}

const Choice& Learning::Class::through_lanes() const {
  const bool tried = mapped && !mapped->trial.settled() && !mapped->next().mapped;
  return tried ? mapped->next() : lanes.next();
}

// Where all calls of one kind have settled and none of the other kind come, the trial of those ends, too: as predicted.
Learning::Contest* Learning::Class::took(bool ran_mapped, std::int64_t duration_ns) {
  const bool asked = by_mapped() != nullptr;
  const bool of_mapped = ran_mapped || (mapped && !mapped->trial.settled() && !asked);
  Contest& contest = of_mapped ? *mapped : lanes;
  if (contest.trial.took(duration_ns)) return &contest;
  if (!asked) return nullptr;
  alike = ran_mapped == was_mapped ? alike + 1 : 1;
  was_mapped = ran_mapped;
  Contest& other = ran_mapped ? lanes : *mapped;
  if (alike >= kMostAlike && contest.trial.settled() && !other.trial.settled()) {
    other.trial.give_up();
    stop_asking();
  }
  return nullptr;
}

void Learning::Class::conclude(Contest& contest, std::span<const std::uint64_t> sums_ns, Rank ranks) {
  contest.trial.conclude(sums_ns, ranks);
  stop_asking();
}

void Learning::Class::stop_asking() {
  if (!mapped || !mapped->trial.settled() || mapped->next().mapped || lanes.trial.settled()) return;
  const Choice& won = mapped->next();
  for (std::size_t i = 0; i < lanes.candidates.size(); ++i) {
    const Choice& choice = lanes.candidates[i].choice;
    if (choice.algorithm != won.algorithm || choice.protocol != won.protocol) continue;
    lanes.trial.give_up();
    lanes.trial.settle(i);
    return;
  }
}

Learning::Class& Learning::class_of(const Query& query, std::vector<Candidate> candidates) {
  TUTTI_ASSERT(!candidates.empty());
  const Collective collective = query.problem.collective;
  const std::uint32_t size = size_class(query.block_bytes);
  const std::pair<std::uint32_t, std::uint32_t> key = {
      static_cast<std::uint32_t>(collective) * KeptTrials::kSizeClasses + size, code_of(candidates)};
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const bool crowded = query.machine != nullptr && query.machine->ranks_per_core > 1;
  const TrialTerms terms = trial_terms(has_root(collective), crowded);
  std::vector<Candidate> through_lanes = candidates;
  std::erase_if(through_lanes, is_mapped);
  Class& made =
      classes_.emplace(key, Class{collective, size, contest_of(std::move(through_lanes), terms), {}}).first->second;
  kept_.settle(made.calls_of(made.lanes), made.lanes);
  made.mapped = contest_of(std::move(candidates), terms);
  kept_.settle(made.calls_of(*made.mapped), *made.mapped);
  made.stop_asking();
  if (!may_map(*made.mapped)) made.mapped.reset();
  return made;
}

void Learning::write() const {
  std::vector<TunedClass> classes;
  for (const auto& [key, learned] : classes_) {
    if (learned.lanes.measured()) classes.push_back(tuned_of(learned.calls_of(learned.lanes), learned.lanes));
    if (learned.mapped && learned.mapped->measured())
      classes.push_back(tuned_of(learned.calls_of(*learned.mapped), *learned.mapped));
  }
  kept_.write(std::move(classes));
}

void Learning::report(const Class& learned, const Contest& contest) const {
  if (rank_ == 0 && contest.trial.settled()) tutti::report(learned.calls_of(contest), contest);
}

}  // namespace tutti
