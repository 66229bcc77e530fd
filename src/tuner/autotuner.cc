#include "src/tuner/autotuner.h"

#include <algorithm>
#include <cmath>

#include "src/base/status.h"

namespace tutti {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr double kMinUs = 0.01;             // Lower bound for predictions.
constexpr std::uint32_t kLead = 1;          // Uncounted operations before a burst.
constexpr std::uint32_t kLeadOfShort = 4;   // Before a burst of short operations, of which several may be in progress.
constexpr std::uint32_t kGlanceSpells = 2;  // Spells in a glance, of which the fastest counts.
constexpr std::uint32_t kGlanceOfShort = 16;  // Operations in a glance, if several fit into a time slice.

constexpr std::uint32_t kStageShift = 8;  // In outcome(): the stage; lower bits are candidates.

// Median of the nonzero values, since some bursts are disturbed and some lucky; 0 if there are none.
std::uint64_t median(std::span<const std::uint64_t> bursts) {
  std::vector<std::uint64_t> values(bursts.begin(), bursts.end());
  std::erase(values, 0);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

AutotunerOptions autotuner_options(bool rooted, bool oversubscribed) {
  AutotunerOptions terms;
  terms.run_ahead = rooted;
  if (!rooted && !oversubscribed) return terms;
  if (oversubscribed) terms.spell = terms.min_counted = 4;
  terms.burst_us = rooted ? 1000 : 4000;
  terms.max_counted = rooted ? 2000 : 500;
  if (rooted) terms.max_after_glance = 3;
  return terms;
}

AutotunerOptions autotuner_options_for_gpus(bool rooted) {
  AutotunerOptions terms = autotuner_options(rooted, false);
  terms.idle = 0;
  terms.max_counted = rooted ? 64 : 8;
  terms.max_after_glance = std::min(terms.max_after_glance, 4U);
  return terms;
}

Autotuner::Autotuner(std::span<const double> predicted_us, const AutotunerOptions& terms)
    : terms_(terms), bursts_(predicted_us.size()), measured_us_(predicted_us.size()) {
  TUTTI_ASSERT(!predicted_us.empty());
  const double best = std::max(predicted_us[0], kMinUs);
  const double wanted = std::clamp<double>(terms.burst_us / best, terms.min_counted, terms.max_counted);
  counted_ = static_cast<std::uint32_t>(std::lround(wanted));
  const std::uint32_t each = operations(Stage::glance) + operations(Stage::first) + operations(Stage::rest);
  double spent_us = 0;
  remaining_ = {0};
  for (std::size_t i = 1; i < std::min<std::size_t>(predicted_us.size(), terms.max_candidates); ++i) {
    spent_us += (predicted_us[i] - best) * each;
    if (!(predicted_us[i] <= terms.margin * best) || !(spent_us <= terms.budget_us))
      break;  // Later candidates are slower.
    remaining_.push_back(i);
  }
  tried_ = remaining_.size();
  enter(tried_ == 1 ? Stage::settled : terms.idle > 0 ? Stage::idle : Stage::glance);
}

Autotuner::Extent Autotuner::extent(Stage stage) const {
  const bool brief = counted_ > terms_.min_counted;
  std::uint32_t lead = brief ? kLeadOfShort : kLead;
  if (terms_.run_ahead) lead = std::max(lead, counted_ / 4);
  switch (stage) {
    case Stage::idle: return {1, 0, terms_.idle};
    case Stage::glance:
      if (terms_.run_ahead) return {1, lead, std::max(counted_ / 4, kGlanceSpells)};
      return {1, kLead, brief ? kGlanceOfShort : kGlanceSpells * terms_.spell};
    case Stage::first: return {2, lead, counted_};
    case Stage::rest: return {5, lead, counted_};
    case Stage::settled: break;
  }
  return {};
}

std::uint32_t Autotuner::operations(Stage stage) const {
  const Extent extent = this->extent(stage);
  return extent.rounds * (extent.uncounted + extent.counted);
}

std::uint32_t Autotuner::max_operations() const {
  if (tried_ == 1) return 0;
  const auto tried = static_cast<std::uint32_t>(tried_);
  return operations(Stage::idle) + tried * operations(Stage::glance) +
         std::min(tried, terms_.max_after_glance) * (operations(Stage::first) + operations(Stage::rest));
}

bool Autotuner::tries(std::size_t candidate) const {
  return std::find(remaining_.begin(), remaining_.end(), candidate) != remaining_.end();
}

bool Autotuner::record(std::int64_t duration_ns) {
  if (settled()) return false;
  if (operation_ >= extent(stage_).uncounted) {
    const auto duration = static_cast<std::uint64_t>(std::max<std::int64_t>(duration_ns, 1));
    sum_ns_ += duration;
    spell_ns_ += duration;
    ++timed_;
    ++spell_timed_;
  }
  return end_operation();
}

bool Autotuner::skip() { return !settled() && end_operation(); }

bool Autotuner::end_operation() {
  const Extent extent = this->extent(stage_);
  if (++operation_ > extent.uncounted && (operation_ - extent.uncounted) % terms_.spell == 0) {
    if (spell_timed_ == terms_.spell) min_ns_ = std::min(min_ns_, std::max<std::uint64_t>(spell_ns_ / terms_.spell, 1));
    spell_ns_ = spell_timed_ = 0;
  }
  return operation_ == extent.uncounted + extent.counted && end_burst();
}

bool Autotuner::end_burst() {
  const Extent extent = this->extent(stage_);
  if (stage_ == Stage::idle) {
    enter(Stage::glance);
    return false;
  }
  const std::uint64_t each = timed_ == 0 ? 0 : std::max<std::uint64_t>(sum_ns_ / timed_, 1);
  const std::uint64_t min = min_ns_ == kNever ? 0 : min_ns_;
  bursts_[next()].push_back(stage_ == Stage::glance && !terms_.run_ahead ? min : each);
  begin_burst();
  if (++position_ < remaining_.size()) return false;
  position_ = 0;
  return ++round_ == extent.rounds;
}

void Autotuner::enter(Stage stage) {
  stage_ = stage;
  position_ = 0;
  round_ = 0;
  begin_burst();
}

void Autotuner::begin_burst() {
  operation_ = timed_ = spell_timed_ = 0;
  sum_ns_ = spell_ns_ = 0;
  min_ns_ = kNever;
}

Autotuner::Trial Autotuner::trial_at(std::uint64_t operation) const {
  const Extent extent = this->extent(stage_);
  const std::uint64_t each = extent.uncounted + extent.counted;
  if (operation >= extent.rounds * each * remaining_.size()) return {.candidate = remaining_.front()};
  return {.candidate = remaining_[operation / each % remaining_.size()],
          .tried = true,
          .counts = operation % each >= extent.uncounted};
}

std::uint16_t Autotuner::outcome() const {
  std::uint32_t candidates = 0;
  for (const std::size_t candidate : remaining_) candidates |= 1U << candidate;
  TUTTI_ASSERT(candidates < 1U << kMaxFollowed);
  return static_cast<std::uint16_t>(static_cast<std::uint32_t>(stage_) << kStageShift | candidates);
}

void Autotuner::follow(std::uint16_t outcome) {
  const auto stage = static_cast<Stage>(outcome >> kStageShift);
  TUTTI_ASSERT(!settled() && stage > stage_ && stage <= Stage::settled);
  std::erase_if(remaining_, [&](std::size_t candidate) { return (outcome >> candidate & 1) == 0; });
  TUTTI_ASSERT(!remaining_.empty());
  proceed(stage);
}

std::vector<std::uint64_t> Autotuner::measurements() const {
  std::vector<std::uint64_t> seen;
  for (const std::size_t candidate : remaining_)
    seen.insert(seen.end(), bursts_[candidate].begin(), bursts_[candidate].end());
  return seen;
}

void Autotuner::conclude(std::span<const std::uint64_t> sums_ns, std::uint32_t ranks) {
  const std::size_t bursts = bursts_[remaining_.front()].size();
  TUTTI_ASSERT(!settled() && bursts > 0 && sums_ns.size() == remaining_.size() * bursts && ranks > 0);
  for (std::size_t position = 0; position < remaining_.size(); ++position)
    if (median(sums_ns.subspan(position * bursts, bursts)) == 0) return give_up();
  std::vector<double> sums(bursts_.size());
  double best = 0;
  for (std::size_t position = 0; position < remaining_.size(); ++position) {
    const auto sum = static_cast<double>(median(sums_ns.subspan(position * bursts, bursts)));
    sums[remaining_[position]] = sum;
    measured_us_[remaining_[position]] = sum / ranks / 1e3;
    best = position == 0 ? sum : std::min(best, sum);
  }
  if (stage_ == Stage::rest) return settle(winner_of(sums_ns));
  const double max = (stage_ == Stage::glance ? terms_.glance_cutoff : terms_.first_cutoff) * best;
  // Two bursts do not outweigh a prediction: the default gets a larger margin.
  const auto max_of = [&](std::size_t candidate) {
    return candidate == 0 ? std::max(max, terms_.glance_cutoff * best) : max;
  };
  std::erase_if(remaining_, [&](std::size_t candidate) { return sums[candidate] > max_of(candidate); });
  if (stage_ == Stage::glance) keep_best(sums);
  if (remaining_.size() == 1) return settle(remaining_.front());
  proceed(stage_ == Stage::glance ? Stage::first : Stage::rest);
}

void Autotuner::proceed(Stage stage) {
  if (stage == Stage::first) {
    for (auto& each : bursts_) each.clear();  // The glance had few operations, and the first ones.
  }
  enter(stage);
}

// Keeps the fastest candidates; the default stays unless it was excluded before.
void Autotuner::keep_best(std::span<const double> sums) {
  if (remaining_.size() <= terms_.max_after_glance) return;
  const auto others = remaining_.begin() + (remaining_.front() == 0 ? 1 : 0);
  std::sort(others, remaining_.end(), [&](std::size_t a, std::size_t b) { return sums[a] < sums[b]; });
  remaining_.resize(terms_.max_after_glance);
  std::sort(remaining_.begin(), remaining_.end());
}

// Returns the fastest candidate that beats the default, or the fastest one if the default is excluded.
std::size_t Autotuner::winner_of(std::span<const std::uint64_t> sums_ns) const {
  std::size_t best = 0;
  for (std::size_t position = 1; position < remaining_.size(); ++position) {
    if (measured_us_[remaining_[position]] >= measured_us_[remaining_[best]]) continue;
    if (remaining_.front() != 0 || beats_first(position, sums_ns)) best = position;
  }
  return remaining_[best];
}

// Compares equal rounds of both candidates, since disturbances affect both alike.
bool Autotuner::beats_first(std::size_t position, std::span<const std::uint64_t> sums_ns) const {
  const std::size_t rounds = sums_ns.size() / remaining_.size();
  std::size_t won = 0, seen = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::uint64_t own = sums_ns[position * rounds + round], first = sums_ns[round];
    if (own == 0 || first == 0) continue;
    ++seen;
    won += own < first ? 1 : 0;
  }
  return seen > 0 && static_cast<double>(won) >= terms_.min_win_share * static_cast<double>(seen) &&
         measured_us_[remaining_[position]] <= terms_.min_improvement * measured_us_[0];
}

void Autotuner::give_up() {
  TUTTI_ASSERT(!settled());
  std::fill(measured_us_.begin(), measured_us_.end(), 0);
  settle(remaining_.front());
}

void Autotuner::settle(std::size_t winner) {
  TUTTI_ASSERT(winner < bursts_.size());
  enter(Stage::settled);
  remaining_ = {winner};
}

}  // namespace tutti
