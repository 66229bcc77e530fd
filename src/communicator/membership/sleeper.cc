#include "src/communicator/membership/sleeper.h"

#include <algorithm>

#include "src/base/atomic.h"
#include "src/communicator/call/pace.h"

namespace tutti {
namespace {

// A sleep takes at most 1 / kSleepsPerWait of the time waited so far, within these bounds. Wake-ups that no post causes
// are therefore late by that fraction: peers in other communicators, data from other hosts, lost wake-ups.
constexpr std::int64_t kSleepsPerWait = 8;
constexpr std::int64_t kMinSleepNs = 50'000;
constexpr std::int64_t kMaxSleepNs = 10'000'000;
// Maximum sleep before the heavy_fence(), and without it.
constexpr std::int64_t kMaxUnfencedNs = 200'000;
constexpr std::int64_t kMaxLosableNs = 2'000'000;

}  // namespace

Sleeper::Sleeper(const Membership& membership) : board_(membership.board), word_(board_.sleep_word(membership.rank)) {
  if (board_.ranks_here() > 1 && allow_heavy_fence())
    store_release(&board_.entry(membership.rank).allows_heavy_fence, 1U);
}

void Sleeper::arm(bool watches_board) {
  store_relaxed(word_, 1U);
  watches_board_ = watches_board;
  if (watches_board) board_.watch();
  full_fence();
  fenced_ = false;
}

bool Sleeper::all_allow_heavy_fence() {
  for (Rank rank = 0; rank < board_.ranks() && !all_allow_; ++rank) {
    if (!board_.is_remote(rank) && load_acquire(&board_.entry(rank).allows_heavy_fence) == 0) return false;
  }
  return all_allow_ = true;
}

// A rank may have posted just before it could see the armed word, and the post may not have been visible at the last
// poll. After the heavy_fence() this is impossible. Short sleeps end soon anyway and do without it.
void Sleeper::sleep(std::int64_t idle_ns) {
  std::int64_t limit_ns = std::clamp(idle_ns / kSleepsPerWait, kMinSleepNs, kMaxSleepNs);
  if (limit_ns > kMaxUnfencedNs && !fenced_ && all_allow_heavy_fence()) {
    heavy_fence();
    fenced_ = true;
    return;  // The caller polls again.
  }
  if (!fenced_) limit_ns = std::min(limit_ns, kMaxLosableNs);
  sleep_on(word_, std::max(limit_ns / thread_pace.communicators, kMinSleepNs));
}

}  // namespace tutti
