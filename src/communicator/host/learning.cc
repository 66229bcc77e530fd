#include "src/communicator/host/learning.h"

#include <sched.h>

#include <algorithm>
#include <fstream>

#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

constexpr std::uint32_t kSizeClasses = 128;
constexpr std::size_t kLongestModel = 100;
constexpr std::uint32_t kMostAlike = 64;

// Integers wrap around, so their sums and products are the same in any order. Floats are rounded at each step.
bool is_exact(const Call& call) {
  if (!reduces(call.collective)) return true;
  switch (call.type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::int16:
    case DataType::uint16:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64: return true;
    default: return false;
  }
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2, kLongestModel);
  }
  return "a processor without a name";
}

int processors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

std::string describe(const Choice& choice) {
  return std::string(choice.algorithm) + (choice.mapped ? "" : std::string(" ") + name(choice.protocol));
}

bool is_mapped(const Candidate& candidate) { return candidate.choice.mapped; }

Learning::Contest contest_of(std::vector<Candidate> candidates, const TrialTerms& terms) {
  std::vector<double> predicted_us;
  for (const Candidate& candidate : candidates) predicted_us.push_back(candidate.predicted_us);
  return {std::move(candidates), Trial(predicted_us, terms)};
}

// Whether a mapped candidate is among those that may still come out.
bool may_map(const Learning::Contest& contest) {
  for (std::size_t i = 0; i < contest.candidates.size(); ++i) {
    if (is_mapped(contest.candidates[i]) && contest.trial.tries(i)) return true;
  }
  return false;
}

TunedClass tuned_of(const Learning::Class& learned, const Learning::Contest& contest) {
  TunedClass tuned;
  tuned.collective = learned.collective;
  tuned.size_class = learned.size_class;
  tuned.mapped = learned.mapped && &contest == &*learned.mapped;
  for (std::size_t i = 0; i < contest.candidates.size(); ++i) {
    const Candidate& candidate = contest.candidates[i];
    tuned.candidates.push_back({std::string(candidate.choice.algorithm), candidate.choice.protocol,
                                candidate.choice.piece_bytes, candidate.choice.channels, candidate.predicted_us,
                                contest.trial.measured_us()[i]});
  }
  std::swap(tuned.candidates.front(), tuned.candidates[contest.trial.next()]);
  return tuned;
}

}  // namespace

Learning::Learning(const CommunicatorOptions& options, Rank rank, std::string place)
    : file_(options.tune_file),
      machine_(std::move(place)),
      rank_(rank),
      untold_(options.tune != Tune::off && !options.tune_file.empty()) {}

bool Learning::concerns(const Call& call, const CommunicatorOptions& options) {
  return options.tune != Tune::off && call.kind == Kind::collective && call.count > 0 && options.algorithm.empty() &&
         options.protocol.empty() && (options.tune == Tune::all || is_exact(call));
}

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
  const std::uint32_t code = code_of(collective, size);
  const std::pair<std::uint32_t, std::uint32_t> key = {code, code_of(candidates)};
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const bool crowded = query.machine != nullptr && query.machine->ranks_per_core > 1;
  const TrialTerms terms = trial_terms(has_root(collective), crowded);
  const Kept kept = kept_.empty() ? Kept{} : kept_[code - 1];
  std::vector<Candidate> through_lanes = candidates;
  std::erase_if(through_lanes, is_mapped);
  Class& made =
      classes_.emplace(key, Class{collective, size, contest_of(std::move(through_lanes), terms), {}}).first->second;
  settle(made.lanes, kept.lanes);
  made.mapped = contest_of(std::move(candidates), terms);
  settle(*made.mapped, kept.mapped);
  made.stop_asking();
  if (!may_map(*made.mapped)) made.mapped.reset();
  return made;
}

// What was kept is none of the candidates: then it is not known.
void Learning::settle(Contest& contest, std::uint32_t kept) {
  for (std::size_t i = 0; i < contest.candidates.size(); ++i) {
    const Choice& choice = contest.candidates[i].choice;
    if (code_of(choice.algorithm, choice.protocol) == kept) return contest.trial.settle(i);
  }
}

std::uint32_t Learning::code_of(Collective collective, std::uint32_t size_class) {
  return static_cast<std::uint32_t>(collective) * kSizeClasses + size_class + 1;
}

std::uint32_t Learning::code_of(std::string_view algorithm, Protocol protocol) {
  return hashed(static_cast<std::uint32_t>(protocol) + 1, algorithm);
}

std::uint32_t Learning::code_of(std::span<const Candidate> candidates) {
  std::uint32_t sum = 0;
  for (const Candidate& candidate : candidates)
    sum += mix(code_of(candidate.choice.algorithm, candidate.choice.protocol));
  return sum;
}

void Learning::read() {
  kept_.resize(std::size_t{kCollectives} * kSizeClasses);
  if (rank_ != 0) return;
  auto cache = read_tune_cache(file_);
  if (!cache.ok()) {
    log(LogLevel::warn, "nothing is taken from TUTTI_TUNE_FILE: %s", std::move(cache).status().message().c_str());
    return;
  }
  const TuneCache::Machine* machine = cache.value().find(machine_);
  if (machine == nullptr) return;
  for (const TunedClass& tuned : machine->classes) {
    const std::uint32_t code = code_of(tuned.collective, tuned.size_class);
    const TunedCandidate& first = tuned.candidates.front();
    (tuned.mapped ? kept_[code - 1].mapped : kept_[code - 1].lanes) = code_of(first.algorithm, first.protocol);
  }
}

void Learning::write() const {
  if (rank_ != 0 || file_.empty()) return;
  TuneCache::Machine machine = {machine_, {}};
  for (const auto& [key, learned] : classes_) {
    if (learned.lanes.measured()) machine.classes.push_back(tuned_of(learned, learned.lanes));
    if (learned.mapped && learned.mapped->measured()) machine.classes.push_back(tuned_of(learned, *learned.mapped));
  }
  if (machine.classes.empty()) return;
  const Status written = add_to_tune_cache(file_, machine);
  if (!written.ok()) log(LogLevel::warn, "nothing is kept in TUTTI_TUNE_FILE: %s", written.message().c_str());
}

void Learning::report(const Class& learned, const Contest& contest) const {
  if (rank_ != 0 || !logs(LogLevel::info) || !contest.trial.settled()) return;
  const auto& measured_us = contest.trial.measured_us();
  std::string others;
  for (std::size_t i = 0; i < contest.candidates.size(); ++i) {
    if (i == contest.trial.next() || measured_us[i] == 0) continue;
    char text[64];
    std::snprintf(text, sizeof text, " %.3g us", measured_us[i]);
    others += ", " + describe(contest.candidates[i].choice) + text;
  }
  const bool mapped = learned.mapped && &contest == &*learned.mapped;
  log(LogLevel::info, "%s from %llu bytes on%s by %s: %.3g us%s", name(learned.collective),
      static_cast<unsigned long long>(least_bytes(learned.size_class)), mapped ? ", in memory that ranks can map," : "",
      describe(contest.next()).c_str(), measured_us[contest.trial.next()], others.c_str());
}

std::string machine_name(const CommunicatorOptions& options, const Hosts& hosts, Rank ranks) {
  if (options.tune_file.empty()) return "";
  std::map<Rank, Rank> sizes;  // By leader.
  for (Rank rank = 0; rank < ranks; ++rank) ++sizes[hosts.leader_of(rank)];
  std::map<Rank, Rank> counts;  // Of hosts, by their size.
  for (const auto& [leader, size] : sizes) ++counts[size];
  std::string name = options.version + ", hosts";
  for (const auto& [size, count] : counts) name += " " + std::to_string(count) + "x" + std::to_string(size);
  return name + ", " + std::to_string(processors()) + " CPUs of " + processor() + ", " +
         (options.transport.empty() ? "no transport asked for" : options.transport);
}

}  // namespace tutti
