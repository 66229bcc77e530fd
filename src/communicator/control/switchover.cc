#include "src/communicator/control/switchover.h"

#include <algorithm>

#include "src/base/atomic.h"
#include "src/base/status.h"

namespace tutti {
namespace {

// The word: what has become of an offer in 2 bits, then the turn in 6, the outcome in 16, and the number in 40.
enum class State : std::uint64_t { none, offered, confirmed, called_off };

constexpr int kTurnShift = 2, kOutcomeShift = 8, kFromShift = 24;
constexpr std::uint32_t kMostTurns = 1U << (kOutcomeShift - kTurnShift);
constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << (64 - kFromShift);

std::uint64_t word_of(const Switchover::Decision& decision, State state) {
  return static_cast<std::uint64_t>(state) | std::uint64_t{decision.turn} << kTurnShift |
         std::uint64_t{decision.outcome} << kOutcomeShift | decision.from << kFromShift;
}

State state_of(std::uint64_t word) { return static_cast<State>(word % (1U << kTurnShift)); }

Switchover::Decision decision_of(std::uint64_t word) {
  return {.turn = static_cast<std::uint32_t>(word >> kTurnShift) % kMostTurns,
          .outcome = static_cast<std::uint16_t>(word >> kOutcomeShift),
          .from = word >> kFromShift};
}

}  // namespace

Switchover::Shown Switchover::show(Rank self, std::uint64_t number) const {
  store_release(shown_[self], number);
  full_fence();
  return Shown(number);
}

std::optional<Switchover::Decision> Switchover::look(Shown shown, std::uint32_t turn) const {
  for (;;) {
    const std::uint64_t word = load_acquire(word_);
    const Decision decision = decision_of(word);
    const State state = state_of(word);
    if (decision.turn != turn || shown.number_ < decision.from) return std::nullopt;
    if (state == State::confirmed) return decision;
    if (state != State::offered) return std::nullopt;
    if (compare_exchange(word_, word, word_of(decision, State::called_off))) return std::nullopt;
  }
}

Switchover::Decision Switchover::offer(std::uint32_t turn, std::uint16_t outcome, std::uint64_t margin) const {
  std::uint64_t furthest = 0;
  for (const std::uint64_t* shown : shown_) furthest = std::max(furthest, load_acquire(shown));
  const Decision decision = {turn, outcome, furthest + margin};
  TUTTI_ASSERT(margin > 0 && turn > 0 && turn < kMostTurns && decision.from < kMostNumbers);
  store_release(word_, word_of(decision, State::offered));
  full_fence();
  return decision;
}

bool Switchover::has_come_to(const Decision& offered) const {
  return std::any_of(shown_.begin(), shown_.end(),
                     [&](const std::uint64_t* shown) { return load_acquire(shown) >= offered.from; });
}

bool Switchover::confirm(const Decision& offered) const {
  return compare_exchange(word_, word_of(offered, State::offered), word_of(offered, State::confirmed));
}

void Switchover::call_off(const Decision& offered) const {
  compare_exchange(word_, word_of(offered, State::offered), word_of(offered, State::called_off));
}

}  // namespace tutti
