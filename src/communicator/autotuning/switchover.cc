#include "src/communicator/autotuning/switchover.h"

#include <algorithm>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/status.h"

namespace tutti {
namespace {

// Layout of the word: state of the offer in 2 bits, index in 6, outcome in 16, first operation in 40.
enum class State : std::uint64_t { none, offered, confirmed, called_off };

constexpr int kIndexShift = 2, kOutcomeShift = 8, kFromShift = 24;
constexpr std::uint32_t kMaxDecisions = 1U << (kOutcomeShift - kIndexShift);
constexpr std::uint64_t kMaxNumbers = std::uint64_t{1} << (64 - kFromShift);

std::uint64_t word_of(const Switchover::Decision& decision, State state) {
  return static_cast<std::uint64_t>(state) | std::uint64_t{decision.index} << kIndexShift |
         std::uint64_t{decision.outcome} << kOutcomeShift | decision.from << kFromShift;
}

State state_of(std::uint64_t word) { return static_cast<State>(word % (1U << kIndexShift)); }

Switchover::Decision decision_of(std::uint64_t word) {
  return {.index = static_cast<std::uint32_t>(word >> kIndexShift) % kMaxDecisions,
          .outcome = static_cast<std::uint16_t>(word >> kOutcomeShift),
          .from = word >> kFromShift};
}

}  // namespace

Switchover::Arrival Switchover::show(Rank self, std::uint64_t number, std::uint32_t index) const {
  store_release(shown_[self], number);
  full_fence();
  return {.number = number, .index = index};
}

bool Switchover::step(Arrival& arrival) const {
  if (arrival.unconfirmed) {
    const Decision offered = *std::exchange(arrival.unconfirmed, std::nullopt);
    return compare_exchange(word_, word_of(offered, State::offered), word_of(offered, State::called_off));
  }
  const std::uint64_t word = load_acquire(word_);
  const Decision decision = decision_of(word);
  if (decision.index != arrival.index || arrival.number < decision.from) return true;
  if (state_of(word) == State::confirmed) arrival.follows = decision;
  if (state_of(word) != State::offered) return true;
  arrival.unconfirmed = decision;
  return false;
}

Switchover::Proposal Switchover::prepare(std::uint32_t index, std::uint16_t outcome, std::uint64_t margin) const {
  const Decision latest = decision_of(load_acquire(word_));
  std::uint64_t furthest = 0;
  for (const std::uint64_t* shown : shown_) furthest = std::max(furthest, load_acquire(shown));
  Decision decision = {index, outcome, furthest + margin};
  if (latest.index == index) decision.from = std::max(decision.from, latest.from + 1);
  TUTTI_ASSERT(margin > 0 && index > 0 && index < kMaxDecisions && decision.from < kMaxNumbers);
  return {.offered = decision};
}

bool Switchover::step(Proposal& proposal) const {
  const std::uint64_t word = word_of(proposal.offered, State::offered);
  if (!proposal.made) {
    store_release(word_, word);
    full_fence();
    proposal.made = true;
    return false;
  }
  if (!proposal.late && proposal.looked_at < shown_.size()) {
    proposal.late = load_acquire(shown_[proposal.looked_at++]) >= proposal.offered.from;
    return false;
  }
  const State outcome = proposal.late ? State::called_off : State::confirmed;
  const bool exchanged = compare_exchange(word_, word, word_of(proposal.offered, outcome));
  proposal.confirmed = exchanged && !proposal.late;
  return true;
}

}  // namespace tutti
