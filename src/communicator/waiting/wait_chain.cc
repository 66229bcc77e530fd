#include "src/communicator/waiting/wait_chain.h"

#include <sched.h>

#include <algorithm>
#include <optional>

#include "src/base/clock.h"

namespace tutti {
namespace {

// Returns the wait of a rank that polls now; nullopt if it does not poll in time, or if the communicator fails.
std::optional<Wait> live_wait(const Board& board, Rank rank, std::int64_t within_ms,
                              const std::function<void()>& meanwhile) {
  const WaitRecord& record = board.entry(rank).wait;
  std::optional<Wait> first;
  for (const Deadline deadline = Deadline::after_ms(within_ms); !deadline.passed() && !board.failed();) {
    const auto wait = read_wait(record);
    const bool is_same = wait && first && wait->began_ns == first->began_ns && wait->peer == first->peer;
    if (is_same && wait->looks > first->looks) return wait;
    if (wait && !is_same) first = wait;
    meanwhile();
    ::sched_yield();
  }
  return std::nullopt;
}

std::string describe(WaitingCall call) {
  if (call == WaitingCall::collective) return "";
  return call == WaitingCall::send ? " in a send" : " in a recv";
}

}  // namespace

std::vector<ChainedWait> follow_waits(const Membership& membership, Rank first, std::int64_t within_ms,
                                      const std::function<void()>& meanwhile) {
  std::vector<ChainedWait> chain;
  const auto is_in_chain = [&](Rank rank) {
    return rank == membership.rank ||
           std::any_of(chain.begin(), chain.end(), [rank](const ChainedWait& wait) { return wait.rank == rank; });
  };
  for (Rank rank = first; !membership.mesh.is_remote(rank) && !is_in_chain(rank); rank = chain.back().peer) {
    const auto wait = live_wait(membership.board, rank, within_ms, meanwhile);
    if (!wait || wait->peer >= membership.ranks) break;
    chain.push_back({rank, wait->peer, wait->call});
  }
  return chain;
}

Rank end_of(const std::vector<ChainedWait>& chain, Rank self, Rank first) {
  if (chain.empty()) return first;
  const Rank end = chain.back().peer;
  const bool is_cycle = end == self || std::any_of(chain.begin(), chain.end(),
                                                   [end](const ChainedWait& wait) { return wait.rank == end; });
  return is_cycle ? first : end;
}

std::string describe(const std::vector<ChainedWait>& chain, Rank self, Rank first) {
  if (chain.empty()) return "";
  std::string text = " (rank " + std::to_string(self) + " waits for rank " + std::to_string(first);
  for (const ChainedWait& wait : chain)
    text += ", which waits for rank " + std::to_string(wait.peer) + describe(wait.call);
  return text + ")";
}

}  // namespace tutti
