#include "src/communicator/autotuning/device_autotuning.h"

#include <algorithm>
#include <limits>

#include "src/base/atomic.h"
#include "src/base/status.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMaxTimers = 256;  // A program may enqueue this many calls, or more, ahead of its device.
constexpr std::uint64_t kMaxMargin = 1024;
constexpr std::uint64_t kLater = std::numeric_limits<std::uint64_t>::max();  // Later than any operation of a stage.

static_assert(kMaxMeasurements >= Autotuner::kMaxMeasurements);
static_assert(kMaxSavedWords * sizeof(std::uint32_t) >= SavedTuning::kClasses * sizeof(SavedTuning::SavedCodes));

}  // namespace

DeviceAutotuning::DeviceAutotuning(const CommunicatorOptions& options, Environment environment)
    : environment_(std::move(environment)), saved_(options, environment_.rank, environment_.machine_key) {}

void DeviceAutotuning::publish_saved() {
  if (!saved_.needs_sharing()) return;
  saved_.read();
  std::uint32_t* shown = environment_.board.autotuners().saved;
  for (const SavedTuning::SavedCodes& codes : saved_.table()) {
    if (!is_root()) break;
    store_relaxed(shown++, codes.lanes);
    store_relaxed(shown++, codes.mapped);
  }
}

// The ranks have synchronized since publish_saved().
void DeviceAutotuning::read_published() {
  if (!saved_.needs_sharing()) return;
  const std::uint32_t* shown = environment_.board.autotuners().saved;
  for (SavedTuning::SavedCodes& codes : saved_.table()) {
    codes.lanes = load_relaxed(shown++);
    codes.mapped = load_relaxed(shown++);
  }
  saved_.mark_shared();
}

void DeviceAutotuning::write() const {
  std::vector<const TuningClass*> classes;
  for (const auto& [key, tuned] : classes_) classes.push_back(&tuned.tuning);
  saved_.write(classes);
}

DeviceAutotuning::Class& DeviceAutotuning::class_of(const Query& query, std::vector<Candidate> candidates) {
  TUTTI_ASSERT(!candidates.empty());
  const ClassOfCalls calls = {query.problem.collective, size_class(query.block_bytes), query.mapped};
  const TuningKey key = tuning_key(calls, candidates);
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const AutotunerOptions terms = autotuner_options_for_gpus(has_root(calls.collective));
  Class& made = classes_.emplace(key, Class{.tuning = TuningClass(calls, std::move(candidates), terms)}).first->second;
  fresh_.push_back(key);
  Autotuner& autotuner = made.tuning.autotuner;
  saved_.settle(made.tuning);
  if (!autotuner.settled() && cells_ == kMaxAutotunerCells) autotuner.give_up();
  if (autotuner.settled()) {
    made.before = 0;
    return made;
  }
  made.cell = cells_++;
  ++being_tuned_;
  return made;
}

// A refused group may already have changed over. Calls before the switchover that are made later still use the previous
// candidate.
void DeviceAutotuning::assign(Class& tuned, const Call& call) {
  Autotuner& autotuner = tuned.tuning.autotuner;
  const auto ahead = std::count_if(assigned_.begin(), assigned_.end(),
                                   [&](const Assignment& assignment) { return assignment.tuned == &tuned; });
  const std::uint64_t number = tuned.made + static_cast<std::uint64_t>(ahead) + 1;
  if (!autotuner.settled()) {
    look_at_timers(tuned);
    const auto decision = switchover(tuned).arrive(environment_.rank, number, tuned.stage);
    if (decision) change_over(tuned, *decision);
  }
  Assignment assignment = {.call = &call, .tuned = &tuned, .candidate = tuned.meanwhile};
  if (number > tuned.before) {
    const Autotuner::Trial of_autotuner = autotuner.trial_at(number - 1 - tuned.before);
    assignment.candidate = of_autotuner.candidate;
    assignment.tried = of_autotuner.tried;
    assignment.counts = of_autotuner.counts;
    assignment.settled = autotuner.settled();
  }
  assigned_.push_back(assignment);
  if (is_root() && !autotuner.settled()) propose(tuned);
}

// Classes get cells in the order in which they are created, so those of the dropped classes are free again.
// Old figures remain until the next class writes; a count that is too large only delays a proposal.
void DeviceAutotuning::cancel() {
  assigned_.clear();
  for (const TuningKey& key : fresh_) {
    const auto found = classes_.find(key);
    if (!found->second.tuning.autotuner.settled()) {
      --cells_;
      --being_tuned_;
    }
    classes_.erase(found);
  }
  fresh_.clear();
}

const DeviceAutotuning::Assignment* DeviceAutotuning::assignment_of(const Call& call) const {
  const auto found = std::find_if(assigned_.begin(), assigned_.end(),
                                  [&](const Assignment& assignment) { return assignment.call == &call; });
  return found == assigned_.end() ? nullptr : &*found;
}

void DeviceAutotuning::note_made(const Call& call) {
  TUTTI_ASSERT(!assigned_.empty() && assigned_.front().call == &call);
  const Assignment assignment = assigned_.front();
  assigned_.pop_front();
  ++assignment.tuned->made;
  if (assignment.tried) assignment.tuned->awaited.push_back(std::move(running_));
  running_ = nullptr;
}

// ---- Times ----

// Returns null if all timers are in use; the call is then not timed.
std::unique_ptr<DeviceTimer> DeviceAutotuning::free_timer() {
  if (timers_.empty() && timers_made_ == kMaxTimers) {
    for (auto& [key, tuned] : classes_) look_at_timers(tuned);
  }
  if (!timers_.empty()) {
    std::unique_ptr<DeviceTimer> timer = std::move(timers_.back());
    timers_.pop_back();
    return timer;
  }
  if (timers_made_ == kMaxTimers) return nullptr;
  auto made = environment_.make_timer();
  if (!made.ok()) return nullptr;
  ++timers_made_;
  return std::move(made).value();
}

Status DeviceAutotuning::start_timing(const Call& call, DeviceStream stream) {
  const Assignment* assignment = assignment_of(call);
  if (assignment == nullptr || !assignment->counts) return {};
  running_ = free_timer();
  begun_ = running_.get();
  return begun_ == nullptr ? Status() : begun_->begin(stream);
}

Status DeviceAutotuning::end_timing(DeviceStream stream) {
  DeviceTimer* timer = std::exchange(begun_, nullptr);
  return timer == nullptr ? Status() : timer->end(stream);
}

// Records durations in call order. A call whose duration the device cannot report counts as not timed.
void DeviceAutotuning::look_at_timers(Class& tuned) {
  while (!tuned.awaited.empty()) {
    std::unique_ptr<DeviceTimer>& timer = tuned.awaited.front();
    std::optional<std::int64_t> took_ns;
    if (timer != nullptr) {
      auto took = timer->took_ns();
      if (took.ok() && !took.value()) return;
      if (took.ok()) took_ns = took.value();
      timers_.push_back(std::move(timer));
    }
    tuned.awaited.pop_front();
    Autotuner& autotuner = tuned.tuning.autotuner;
    const bool ended = took_ns ? autotuner.record(*took_ns) : autotuner.skip();
    if (ended) publish_measurements(tuned);
  }
}

// ---- Exchange between ranks ----

Switchover DeviceAutotuning::switchover(const Class& tuned) const {
  const Board& board = environment_.board;
  std::vector<std::uint64_t*> shown;
  for (Rank rank = 0; rank < board.ranks(); ++rank) shown.push_back(&board.autotuner_entry(tuned.cell, rank).shown);
  return {&board.autotuners().cells[tuned.cell].word, std::move(shown)};
}

void DeviceAutotuning::publish_measurements(const Class& tuned) const {
  constexpr std::uint64_t kLongest = std::numeric_limits<std::uint32_t>::max();
  AutotunerEntry& own = environment_.board.autotuner_entry(tuned.cell, environment_.rank);
  std::uint32_t* to = own.measured_ns;
  for (const std::uint64_t each : tuned.tuning.autotuner.measurements())
    store_relaxed(to++, static_cast<std::uint32_t>(std::min(each, kLongest)));
  store_release(&own.measured_stage, tuned.stage);
}

std::optional<std::vector<std::uint64_t>> DeviceAutotuning::sums_of(const Class& tuned) const {
  const Board& board = environment_.board;
  for (Rank rank = 0; rank < board.ranks(); ++rank)
    if (load_acquire(&board.autotuner_entry(tuned.cell, rank).measured_stage) != tuned.stage) return std::nullopt;
  std::vector<std::uint64_t> sums(tuned.tuning.autotuner.measurements().size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (Rank rank = 0; rank < board.ranks(); ++rank) {
      const std::uint32_t own = load_relaxed(&board.autotuner_entry(tuned.cell, rank).measured_ns[i]);
      sums[i] += own;
      if (own != 0) continue;
      sums[i] = 0;  // Some rank has not timed it.
      break;
    }
  }
  return sums;
}

// A rank publishes figures of a stage only after entering it, so no rank is behind the previous switchover.
void DeviceAutotuning::propose(Class& tuned) {
  if (tuned.agreed) return;
  if (!tuned.concluded) {
    const auto sums = sums_of(tuned);
    if (!sums) return;
    tuned.concluded = tuned.tuning.autotuner;
    tuned.concluded->conclude(*sums, environment_.board.ranks());
  }
  tuned.agreed = switchover(tuned).propose(tuned.stage, tuned.concluded->outcome(), tuned.margin);
  if (!tuned.agreed) tuned.margin = std::min(2 * tuned.margin, kMaxMargin);
}

void DeviceAutotuning::change_over(Class& tuned, const Switchover::Decision& decision) {
  Autotuner& autotuner = tuned.tuning.autotuner;
  tuned.meanwhile = autotuner.trial_at(kLater).candidate;
  if (tuned.concluded) autotuner = *std::exchange(tuned.concluded, std::nullopt);
  else autotuner.follow(decision.outcome);
  tuned.before = decision.from - 1;
  tuned.agreed = false;
  tuned.margin = Class::kFirstMargin;
  ++tuned.stage;
  if (!autotuner.settled()) return;
  if (is_root() && tuned.tuning.measured()) tuned.tuning.log_result();
  if (--being_tuned_ > 0) return;
  timers_.clear();  // No timer is in use: all have reported durations.
  timers_made_ = 0;
}

}  // namespace tutti
