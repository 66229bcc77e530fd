#include "src/communicator/membership/wait_description.h"

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
  const bool is_remote = board.is_remote(rank);
  std::optional<Wait> first;
  for (const Deadline deadline = Deadline::after_ms(within_ms); !deadline.passed() && !board.failed();) {
    const auto wait = read_wait(record);
    if (wait && is_remote) return wait;  // An answer.
    const bool is_same = wait && first && wait->began_ns == first->began_ns && wait->peer == first->peer;
    if (is_same && wait->polls > first->polls) return wait;
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

constexpr Rank kMaxListed = 16;

// Returns the ranks of other hosts that have not reported this call. Ranks report their calls when they wait long.
std::string describe_unreported(const Membership& membership, const CallRecord& record) {
  std::string list;
  for (const Rank peer : membership.mesh.remote_ranks()) {
    if (membership.board.last(peer) < record.sequence) list += (list.empty() ? "" : ", ") + std::to_string(peer);
  }
  return list.empty()
             ? ""
             : "; no report of this call from rank " + list + ", which may be late, stopped or in another call";
}

// Lists the ranks that have not called the collective. This rank may wait for another rank than the missing ones.
std::string describe_absent(const Membership& membership, const CallRecord& record, Rank awaited) {
  std::string list;
  Rank count = 0;
  Rank first = membership.ranks;
  for (Rank peer = 0; peer < membership.ranks; ++peer) {
    if (membership.mesh.is_remote(peer) || membership.board.last(peer) >= record.sequence) continue;
    first = std::min(first, peer);
    if (++count > kMaxListed) continue;
    list += (count == 1 ? "" : ", ") + std::to_string(peer);
  }
  const std::string unreported = describe_unreported(membership, record);
  if (count == 0) return unreported;
  if (count == 1 && first == awaited) return ", which has not called it" + unreported;
  if (count == 1) return "; rank " + list + " has not called it" + unreported;
  if (count > kMaxListed) list += " and " + std::to_string(count - kMaxListed) + " more";
  return "; ranks " + list + " have not called it" + unreported;
}

// Describes the last collective of a peer that has not finalized. The peer may be finalizing another communicator, in
// which other ranks wait for this one. Messages are not on the board.
std::string describe_unfinalized(const Board& board, Rank peer) {
  const std::uint64_t last = board.last(peer);
  if (last == 0) return ", which has made no collective call here";
  const auto record = board.call(peer, last);
  return ", whose last collective call here was #" + std::to_string(last) + (record ? ", " + describe(*record) : "");
}

}  // namespace

std::vector<ChainedWait> follow_waits(const Membership& membership, Rank first, std::int64_t within_ms,
                                      const std::function<void()>& meanwhile) {
  std::vector<ChainedWait> chain;
  const auto is_in_chain = [&](Rank rank) {
    return rank == membership.rank ||
           std::any_of(chain.begin(), chain.end(), [rank](const ChainedWait& wait) { return wait.rank == rank; });
  };
  for (Rank rank = first; !is_in_chain(rank); rank = chain.back().peer) {
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

std::string describe_awaited(const Membership& membership, const CurrentCall& current, Rank peer) {
  const std::string rank = "rank " + std::to_string(peer);
  if (current.finalizes()) return rank + describe_unfinalized(membership.board, peer);
  return current.record() == nullptr ? rank : rank + describe_absent(membership, *current.record(), peer);
}

std::string wait_hint(const Membership& membership, const CurrentCall& current) {
  if (current.finalizes()) {
    if (membership.one_process)
      return ": a thread that drives several ranks must finalize or destroy them in one group, and threads several "
             "communicators in the same order";
    return CommunicatorCount::several()
               ? ": ranks that share several communicators must destroy them in the same order, or in one group"
               : "";
  }
  // Messages are not on the board, so the peer's call is unknown. A send that waits long usually waits for a peer that
  // sends too, often in a ring of sends.
  const Call* const message = current.message();
  if (message == nullptr || message->kind != Kind::send) return "";
  return ": if sends lead from rank " + std::to_string(message->root) + " back to rank " +
         std::to_string(membership.rank) +
         ", none can go on; put the sends and receives of an exchange into a group (tutti_group_start)";
}

}  // namespace tutti
