#include "src/communicator/device/autotuning.h"

#include <algorithm>
#include <limits>

#include "src/base/atomic.h"
#include "src/base/status.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMaxTimers = 256;  // A program may enqueue this many calls, or more, ahead of its device.
constexpr std::uint64_t kMaxMargin = 1024;
constexpr std::uint64_t kLater = std::numeric_limits<std::uint64_t>::max();  // Later than any operation of a stage.

static_assert(kMaxFigures >= Autotuner::kMaxSeen);
static_assert(kMaxKept * sizeof(std::uint32_t) >= SavedTuning::kClasses * sizeof(SavedTuning::Kept));

}  // namespace

DeviceAutotuning::DeviceAutotuning(const CommunicatorOptions& options, Means means)
    : means_(std::move(means)), saved_(options, means_.rank, means_.place) {}

void DeviceAutotuning::show_kept() {
  if (!saved_.unreported()) return;
  saved_.read();
  std::uint32_t* shown = means_.board.autotuners().kept;
  for (const SavedTuning::Kept& kept : saved_.table()) {
    if (!decides()) break;
    store_relaxed(shown++, kept.lanes);
    store_relaxed(shown++, kept.mapped);
  }
}

// The ranks have synchronized since show_kept().
void DeviceAutotuning::see_kept() {
  if (!saved_.unreported()) return;
  const std::uint32_t* shown = means_.board.autotuners().kept;
  for (SavedTuning::Kept& kept : saved_.table()) {
    kept.lanes = load_relaxed(shown++);
    kept.mapped = load_relaxed(shown++);
  }
  saved_.reported();
}

void DeviceAutotuning::write() const {
  std::vector<TunedClass> classes;
  for (const auto& [key, tuned] : classes_)
    if (tuned.tuning.measured()) classes.push_back(tuned_of(tuned.calls, tuned.tuning));
  saved_.write(std::move(classes));
}

DeviceAutotuning::Class& DeviceAutotuning::class_of(const Query& query, std::vector<Candidate> candidates) {
  TUTTI_ASSERT(!candidates.empty());
  const ClassOfCalls calls = {query.problem.collective, size_class(query.block_bytes), query.mapped};
  const std::uint32_t number =
      (static_cast<std::uint32_t>(calls.collective) * SavedTuning::kSizeClasses + calls.size_class) * 2 +
      (calls.mapped ? 1 : 0);
  const Key key = {number, code_of(candidates)};
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const AutotunerOptions terms = autotuner_options_for_gpus(has_root(calls.collective));
  Class& made = classes_.emplace(key, Class{.calls = calls, .tuning = tuning_class_of(std::move(candidates), terms)})
                    .first->second;
  fresh_.push_back(key);
  Autotuner& autotuner = made.tuning.autotuner;
  saved_.settle(calls, made.tuning);
  if (!autotuner.settled() && places_ == kMaxAutotuners) autotuner.give_up();
  if (autotuner.settled()) {
    made.before = 0;
    return made;
  }
  made.place = places_++;
  ++being_tuned_;
  return made;
}

// A refused group may already have changed over. Calls before the switchover that are made later still use the previous
// candidate.
void DeviceAutotuning::decide(Class& tuned, const Call& call) {
  Autotuner& autotuner = tuned.tuning.autotuner;
  const auto ahead =
      std::count_if(decided_.begin(), decided_.end(), [&](const Turn& turn) { return turn.tuned == &tuned; });
  const std::uint64_t number = tuned.made + static_cast<std::uint64_t>(ahead) + 1;
  if (!autotuner.settled()) {
    look_at_timers(tuned);
    const auto decision = means_.board.switchover(tuned.place).arrive(means_.rank, number, tuned.stage);
    if (decision) change_over(tuned, *decision);
  }
  Turn turn = {.call = &call, .tuned = &tuned, .candidate = tuned.meanwhile};
  if (number > tuned.before) {
    const Autotuner::Trial of_autotuner = autotuner.trial_at(number - 1 - tuned.before);
    turn.candidate = of_autotuner.candidate;
    turn.tried = of_autotuner.tried;
    turn.counts = of_autotuner.counts;
    turn.settled = autotuner.settled();
  }
  decided_.push_back(turn);
  if (decides() && !autotuner.settled()) propose(tuned);
}

// Board entries are assigned in the order in which classes are created, so those of the dropped classes are free again.
// Old figures remain until the next class writes; a count that is too large only delays a proposal.
void DeviceAutotuning::forget() {
  decided_.clear();
  for (const Key& key : fresh_) {
    const auto found = classes_.find(key);
    if (!found->second.tuning.autotuner.settled()) {
      --places_;
      --being_tuned_;
    }
    classes_.erase(found);
  }
  fresh_.clear();
}

const DeviceAutotuning::Turn* DeviceAutotuning::decided(const Call& call) const {
  const auto found =
      std::find_if(decided_.begin(), decided_.end(), [&](const Turn& turn) { return turn.call == &call; });
  return found == decided_.end() ? nullptr : &*found;
}

void DeviceAutotuning::made(const Call& call) {
  TUTTI_ASSERT(!decided_.empty() && decided_.front().call == &call);
  const Turn turn = decided_.front();
  decided_.pop_front();
  ++turn.tuned->made;
  if (turn.tried) turn.tuned->awaited.push_back(std::move(running_));
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
  auto made = means_.make_timer();
  if (!made.ok()) return nullptr;
  ++timers_made_;
  return std::move(made).value();
}

Status DeviceAutotuning::start_timing(const Call& call, DeviceStream stream) {
  const Turn* turn = decided(call);
  if (turn == nullptr || !turn->counts) return {};
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
    const bool ended = took_ns ? autotuner.took(*took_ns) : autotuner.passed();
    if (ended) notify(tuned);
  }
}

// ---- Exchange between ranks ----

void DeviceAutotuning::notify(const Class& tuned) const {
  constexpr std::uint64_t kLongest = std::numeric_limits<std::uint32_t>::max();
  AutotunerEntry& own = means_.board.autotuner_entry(tuned.place, means_.rank);
  std::uint32_t* to = own.seen_ns;
  for (const std::uint64_t each : tuned.tuning.autotuner.seen())
    store_relaxed(to++, static_cast<std::uint32_t>(std::min(each, kLongest)));
  store_release(&own.reported, tuned.stage);
}

std::optional<std::vector<std::uint64_t>> DeviceAutotuning::sums_of(const Class& tuned) const {
  const Board& board = means_.board;
  for (Rank rank = 0; rank < board.ranks(); ++rank)
    if (load_acquire(&board.autotuner_entry(tuned.place, rank).reported) != tuned.stage) return std::nullopt;
  std::vector<std::uint64_t> sums(tuned.tuning.autotuner.seen().size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (Rank rank = 0; rank < board.ranks(); ++rank) {
      const std::uint32_t own = load_relaxed(&board.autotuner_entry(tuned.place, rank).seen_ns[i]);
      sums[i] += own;
      if (own != 0) continue;
      sums[i] = 0;  // Some rank has not timed it.
      break;
    }
  }
  return sums;
}

// A rank publishes figures of a stage only after entering it, so no rank is behind the previous turn.
void DeviceAutotuning::propose(Class& tuned) {
  if (tuned.agreed) return;
  if (!tuned.concluded) {
    const auto sums = sums_of(tuned);
    if (!sums) return;
    tuned.concluded = tuned.tuning.autotuner;
    tuned.concluded->conclude(*sums, means_.board.ranks());
  }
  tuned.agreed = means_.board.switchover(tuned.place).propose(tuned.stage, tuned.concluded->outcome(), tuned.margin);
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
  if (decides() && tuned.tuning.measured()) report(tuned.calls, tuned.tuning);
  if (--being_tuned_ > 0) return;
  timers_.clear();  // No timer is in use: all have reported durations.
  timers_made_ = 0;
}

}  // namespace tutti
