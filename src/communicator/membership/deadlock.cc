// A rank in a send or recv follows the waits that other ranks show, from the rank that it waits for onwards. If the
// waits lead back to the first rank, they form a cycle. A rank in such a wait makes no progress until the rank that it
// waits for does. Collectives run their steps in order. Calls of one communicator run one after the other. A group
// starts a collective only after the messages before it are done.
//
// A cycle seen once is no proof. The waits are read one after the other, and a rank may not yet have polled for data
// that has already arrived. Therefore the same waits must be seen twice, and each rank must have completed a poll in
// between. Then all waits existed at the same time, and no data in flight could end them.
#include "src/communicator/membership/deadlock.h"

#include <algorithm>
#include <string>

#include "src/communicator/call/message_signature.h"
#include "src/communicator/membership/disagreement.h"

namespace tutti {
namespace {

// Counter difference that guarantees a complete poll in between, since the first of the polls may have begun before the
// counter was read.
constexpr std::uint64_t kPollsBetween = 3;

WaitingCall waiting_call(const CurrentCall& current) {
  if (current.record() != nullptr) return WaitingCall::collective;
  return current.message()->kind == Kind::send ? WaitingCall::send : WaitingCall::recv;
}

}  // namespace

DeadlockDetection::DeadlockDetection(ControlPlane& control)
    : membership_(control.membership),
      current_(control.current),
      notifications_(control.notifications),
      failures_(control.failures) {}

void DeadlockDetection::show_wait(Rank peer, std::int64_t began_ns) const {
  if (current_.finalizes()) return;
  const Wait wait = {
      .began_ns = began_ns, .sequence = current_.sequence(), .peer = peer, .call = waiting_call(current_)};
  if (membership_.board.ranks_here() > 1) tutti::show_wait(membership_.board.entry(membership_.rank).wait, wait);
  if (membership_.spans_hosts) notifications_.answer_wait_requests(wait);
}

// Returns the waits from the peer of this rank's message back to this rank; empty if they do not lead to this rank.
std::vector<DeadlockDetection::PeerWait> DeadlockDetection::waits_for_this_rank() const {
  const Board& board = membership_.board;
  std::vector<PeerWait> waits;
  for (Rank rank = current_.message()->root; rank != membership_.rank; rank = waits.back().wait.peer) {
    if (membership_.mesh.is_remote(rank) || waits.size() == membership_.ranks) return {};
    const auto wait = read_wait(board.entry(rank).wait);
    if (!wait || wait->call != WaitingCall::collective || wait->sequence <= current_.sequence() ||
        wait->peer >= membership_.ranks)
      return {};
    // A rank that has completed the collective may have sent the data for which the previous rank waits.
    if (!waits.empty() && wait->sequence > waits.back().wait.sequence) return {};
    const auto call = board.call(rank, wait->sequence);
    if (!call) return {};
    // Messages of an all_to_all_v do not wait for each other, so the other messages may still make progress.
    if (call->collective == kUnequalCollective && wait->peer != membership_.rank) return {};
    waits.push_back({rank, *wait, *call});
  }
  return waits;
}

Status DeadlockDetection::check(std::int64_t began_ns) {
  const Call* const message = current_.message();
  if (message == nullptr || current_.record() != nullptr) return {};
  if (membership_.board.last(message->root) <= current_.sequence()) return {};
  const std::vector<PeerWait> waits = waits_for_this_rank();
  if (waits.empty()) return {};
  const auto same = [](const PeerWait& a, const PeerWait& b) {
    return a.rank == b.rank && a.wait.began_ns == b.wait.began_ns && a.wait.peer == b.wait.peer;
  };
  const bool seen_before = seen_.message_began_ns == began_ns &&
                           std::equal(waits.begin(), waits.end(), seen_.waits.begin(), seen_.waits.end(), same);
  if (!seen_before) {
    seen_ = {began_ns, waits};
    return {};
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].wait.polls < seen_.waits[i].wait.polls + kPollsBetween) return {};
  }
  std::string order;
  for (const PeerWait& waiting : waits)
    order += "rank " + std::to_string(waiting.rank) + " waits for rank " + std::to_string(waiting.wait.peer) + ", ";
  order += "rank " + std::to_string(membership_.rank) + " waits for rank " + std::to_string(message->root);
  return failures_.fail(deadlock(membership_.options.name, {waits.front().rank, waits.front().call},
                                 {membership_.rank, describe_message(*message)}, order));
}

}  // namespace tutti
