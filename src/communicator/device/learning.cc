#include "src/communicator/device/learning.h"

#include <algorithm>
#include <limits>

#include "src/base/atomic.h"
#include "src/base/status.h"

namespace tutti {
namespace {

constexpr std::uint32_t kMostTimers = 256;  // A program may be as many calls ahead of its device, or more.
constexpr std::uint64_t kMostMargin = 1024;
constexpr std::uint64_t kLater = std::numeric_limits<std::uint64_t>::max();  // Than any operation of a stage.

static_assert(kMostFigures >= Trial::kMostSeen);
static_assert(kMostKept * sizeof(std::uint32_t) >= KeptTrials::kClasses * sizeof(KeptTrials::Kept));

}  // namespace

DeviceLearning::DeviceLearning(const CommunicatorOptions& options, Means means)
    : means_(std::move(means)), kept_(options, means_.rank, means_.place) {}

void DeviceLearning::show_kept() {
  if (!kept_.untold()) return;
  kept_.read();
  std::uint32_t* shown = means_.board.trials().kept;
  for (const KeptTrials::Kept& kept : kept_.table()) {
    if (!decides()) break;
    store_relaxed(shown++, kept.lanes);
    store_relaxed(shown++, kept.mapped);
  }
}

// Ranks have met since it was shown.
void DeviceLearning::see_kept() {
  if (!kept_.untold()) return;
  const std::uint32_t* shown = means_.board.trials().kept;
  for (KeptTrials::Kept& kept : kept_.table()) {
    kept.lanes = load_relaxed(shown++);
    kept.mapped = load_relaxed(shown++);
  }
  kept_.told();
}

void DeviceLearning::write() const {
  std::vector<TunedClass> classes;
  for (const auto& [key, learned] : classes_)
    if (learned.contest.measured()) classes.push_back(tuned_of(learned.calls, learned.contest));
  kept_.write(std::move(classes));
}

DeviceLearning::Class& DeviceLearning::class_of(const Query& query, std::vector<Candidate> candidates) {
  TUTTI_ASSERT(!candidates.empty());
  const ClassOfCalls calls = {query.problem.collective, size_class(query.block_bytes), query.mapped};
  const std::uint32_t number =
      (static_cast<std::uint32_t>(calls.collective) * KeptTrials::kSizeClasses + calls.size_class) * 2 +
      (calls.mapped ? 1 : 0);
  const Key key = {number, code_of(candidates)};
  const auto known = classes_.find(key);
  if (known != classes_.end()) return known->second;
  const TrialTerms terms = trial_terms_for_teams(has_root(calls.collective));
  Class& made =
      classes_.emplace(key, Class{.calls = calls, .contest = contest_of(std::move(candidates), terms)}).first->second;
  fresh_.push_back(key);
  Trial& trial = made.contest.trial;
  kept_.settle(calls, made.contest);
  if (!trial.settled() && places_ == kMostTrials) trial.give_up();
  if (trial.settled()) {
    made.before = 0;
    return made;
  }
  made.place = places_++;
  ++on_trial_;
  return made;
}

// A group that was refused may have changed over: calls that come again before that one go as they would have.
void DeviceLearning::decide(Class& learned, const Call& call) {
  Trial& trial = learned.contest.trial;
  const auto ahead =
      std::count_if(decided_.begin(), decided_.end(), [&](const Turn& turn) { return turn.learned == &learned; });
  const std::uint64_t number = learned.made + static_cast<std::uint64_t>(ahead) + 1;
  if (!trial.settled()) {
    look_at_timers(learned);
    const auto decision = means_.board.switchover(learned.place).arrive(means_.rank, number, learned.stage);
    if (decision) change_over(learned, *decision);
  }
  Turn turn = {.call = &call, .learned = &learned, .candidate = learned.meanwhile};
  if (number > learned.before) {
    const Trial::Turn of_trial = trial.turn_at(number - 1 - learned.before);
    turn.candidate = of_trial.candidate;
    turn.tried = of_trial.tried;
    turn.counts = of_trial.counts;
    turn.settled = trial.settled();
  }
  decided_.push_back(turn);
  if (decides() && !trial.settled()) propose(learned);
}

// Places are taken in the order in which classes are made, so those of the last ones are free again. What was shown
// there stands until the next class does: a number that is too large delays an offer at most.
void DeviceLearning::forget() {
  decided_.clear();
  for (const Key& key : fresh_) {
    const auto found = classes_.find(key);
    if (!found->second.contest.trial.settled()) {
      --places_;
      --on_trial_;
    }
    classes_.erase(found);
  }
  fresh_.clear();
}

const DeviceLearning::Turn* DeviceLearning::decided(const Call& call) const {
  const auto found =
      std::find_if(decided_.begin(), decided_.end(), [&](const Turn& turn) { return turn.call == &call; });
  return found == decided_.end() ? nullptr : &*found;
}

void DeviceLearning::made(const Call& call) {
  TUTTI_ASSERT(!decided_.empty() && decided_.front().call == &call);
  const Turn turn = decided_.front();
  decided_.pop_front();
  ++turn.learned->made;
  if (turn.tried) turn.learned->awaited.push_back(std::move(running_));
  running_ = nullptr;
}

// ---- Times ----

// Where so many calls are under way that there is none, this call is not timed.
std::unique_ptr<DeviceTimer> DeviceLearning::free_timer() {
  if (timers_.empty() && timers_made_ == kMostTimers) {
    for (auto& [key, learned] : classes_) look_at_timers(learned);
  }
  if (!timers_.empty()) {
    std::unique_ptr<DeviceTimer> timer = std::move(timers_.back());
    timers_.pop_back();
    return timer;
  }
  if (timers_made_ == kMostTimers) return nullptr;
  auto made = means_.make_timer();
  if (!made.ok()) return nullptr;
  ++timers_made_;
  return std::move(made).value();
}

Status DeviceLearning::start_timing(const Call& call, DeviceStream stream) {
  const Turn* turn = decided(call);
  if (turn == nullptr || !turn->counts) return {};
  running_ = free_timer();
  begun_ = running_.get();
  return begun_ == nullptr ? Status() : begun_->begin(stream);
}

Status DeviceLearning::end_timing(DeviceStream stream) {
  DeviceTimer* timer = std::exchange(begun_, nullptr);
  return timer == nullptr ? Status() : timer->end(stream);
}

// In the order of the calls. One whose time the device does not tell was not timed.
void DeviceLearning::look_at_timers(Class& learned) {
  while (!learned.awaited.empty()) {
    std::unique_ptr<DeviceTimer>& timer = learned.awaited.front();
    std::optional<std::int64_t> took_ns;
    if (timer != nullptr) {
      auto took = timer->took_ns();
      if (took.ok() && !took.value()) return;
      if (took.ok()) took_ns = took.value();
      timers_.push_back(std::move(timer));
    }
    learned.awaited.pop_front();
    Trial& trial = learned.contest.trial;
    const bool ended = took_ns ? trial.took(*took_ns) : trial.passed();
    if (ended) tell(learned);
  }
}

// ---- What ranks tell each other ----

void DeviceLearning::tell(const Class& learned) const {
  constexpr std::uint64_t kLongest = std::numeric_limits<std::uint32_t>::max();
  TrialEntry& own = means_.board.trial_entry(learned.place, means_.rank);
  std::uint32_t* to = own.seen_ns;
  for (const std::uint64_t each : learned.contest.trial.seen())
    store_relaxed(to++, static_cast<std::uint32_t>(std::min(each, kLongest)));
  store_release(&own.told, learned.stage);
}

std::optional<std::vector<std::uint64_t>> DeviceLearning::sums_of(const Class& learned) const {
  const Board& board = means_.board;
  for (Rank rank = 0; rank < board.ranks(); ++rank)
    if (load_acquire(&board.trial_entry(learned.place, rank).told) != learned.stage) return std::nullopt;
  std::vector<std::uint64_t> sums(learned.contest.trial.seen().size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    for (Rank rank = 0; rank < board.ranks(); ++rank) {
      const std::uint32_t own = load_relaxed(&board.trial_entry(learned.place, rank).seen_ns[i]);
      sums[i] += own;
      if (own != 0) continue;
      sums[i] = 0;  // Not all have timed it.
      break;
    }
  }
  return sums;
}

// A rank has told the figures of a stage once it is in it: so nobody is behind the turn before.
void DeviceLearning::propose(Class& learned) {
  if (learned.agreed) return;
  if (!learned.concluded) {
    const auto sums = sums_of(learned);
    if (!sums) return;
    learned.concluded = learned.contest.trial;
    learned.concluded->conclude(*sums, means_.board.ranks());
  }
  learned.agreed =
      means_.board.switchover(learned.place).propose(learned.stage, learned.concluded->outcome(), learned.margin);
  if (!learned.agreed) learned.margin = std::min(2 * learned.margin, kMostMargin);
}

void DeviceLearning::change_over(Class& learned, const Switchover::Decision& decision) {
  Trial& trial = learned.contest.trial;
  learned.meanwhile = trial.turn_at(kLater).candidate;
  if (learned.concluded) trial = *std::exchange(learned.concluded, std::nullopt);
  else trial.follow(decision.outcome);
  learned.before = decision.from - 1;
  learned.agreed = false;
  learned.margin = Class::kFirstMargin;
  ++learned.stage;
  if (!trial.settled()) return;
  if (decides() && learned.contest.measured()) report(learned.calls, learned.contest);
  if (--on_trial_ > 0) return;
  timers_.clear();  // None is under way: all have told what they took.
  timers_made_ = 0;
}

}  // namespace tutti
