#include "src/communicator/waiting/wait_description.h"

#include <algorithm>

namespace tutti {
namespace {

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

std::string describe_awaited(const Membership& membership, const CurrentCall& current, Rank peer) {
  const std::string rank = "rank " + std::to_string(peer);
  if (current.finalizes()) return rank + describe_unfinalized(membership.board, peer);
  return current.record() == nullptr ? rank : rank + describe_absent(membership, *current.record(), peer);
}

std::string wait_hint(const Membership& membership, const CurrentCall& current) {
  if (current.finalizes()) {
    if (membership.one_process)
      return ": a thread that drives several ranks must finalize or destroy them in one group";
    return ": ranks that share several communicators must destroy them in the same order, or in one group";
  }
  // Messages are not on the board, so the peer's call is unknown. A send that waits long usually waits for a peer that
  // sends too.
  const Call* const message = current.message();
  if (message == nullptr || message->kind != Kind::send) return "";
  return ": if rank " + std::to_string(message->root) + " is in a send to rank " + std::to_string(membership.rank) +
         " meanwhile, neither can go on; put the sends and receives of an exchange into a group (tutti_group_start)";
}

}  // namespace tutti
