// Finds ranks of one host that wait for each other, one of them in a send or recv and the others in a collective that
// it has not called. Without this, all of them would wait until the timeout.
//
// A rank in a send or recv follows the waits that the others show: the rank that it waits for, the rank that this one
// waits for, and so on. If they lead back to itself, the waits form a cycle. A rank in such a wait does nothing until
// the rank that it waits for has done something: collectives run their steps in order, calls of one communicator run
// one after the other, and a group starts a collective only after the messages before it are done.
//
// A cycle seen once may be an illusion, because the waits are read one after the other, and because a rank may not yet
// have polled for what has already arrived. So the same waits must be seen twice, and each rank must have completed a
// poll between the two times. Then all waits existed at the same time, and nothing that was on its way could end them.
#include <algorithm>
#include <string>

#include "src/communicator/control/wait_record.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/host/message_operation.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// A poll lies entirely between the first and the last of three looks. The first may have begun before it was read.
constexpr std::uint64_t kLooksBetween = 3;

}  // namespace

void HostCommunicator::show_wait(Rank peer, const WaitState& wait_state) const {
  if (board_.ranks_here() == 1 || (record_ == nullptr && message_ == nullptr)) return;
  tutti::show_wait(
      board_.entry(rank_).wait,
      {.began_ns = wait_state.began_ns, .sequence = sequence_, .peer = peer, .in_collective = record_ != nullptr});
}

// The waits from the peer of this rank's message back to this rank; empty if they do not lead here.
std::vector<HostCommunicator::PeerWait> HostCommunicator::waits_for_this_rank() const {
  std::vector<PeerWait> waits;
  for (Rank rank = message_->root; rank != rank_; rank = waits.back().wait.peer) {
    if (mesh_.is_remote(rank) || waits.size() == ranks_) return {};
    const auto wait = read_wait(board_.entry(rank).wait);
    if (!wait || !wait->in_collective || wait->sequence <= sequence_ || wait->peer >= ranks_) return {};
    // A rank that has completed the collective may have sent what the rank before it waits for.
    if (!waits.empty() && wait->sequence > waits.back().wait.sequence) return {};
    const auto call = board_.call(rank, wait->sequence);
    if (!call) return {};
    // The messages of an all_to_all_v do not wait for each other: its other messages may still make progress.
    if (call->collective == kUnequalCollective && wait->peer != rank_) return {};
    waits.push_back({rank, *wait, *call});
  }
  return waits;
}

Status HostCommunicator::notice_deadlock(const WaitState& wait_state) {
  if (message_ == nullptr || record_ != nullptr || board_.last(message_->root) <= sequence_) return {};
  const std::vector<PeerWait> waits = waits_for_this_rank();
  if (waits.empty()) return {};
  const auto same = [](const PeerWait& a, const PeerWait& b) {
    return a.rank == b.rank && a.wait.began_ns == b.wait.began_ns && a.wait.peer == b.wait.peer;
  };
  const bool seen_before =
      seen_waits_.message_began_ns == wait_state.began_ns &&
      std::equal(waits.begin(), waits.end(), seen_waits_.waits.begin(), seen_waits_.waits.end(), same);
  if (!seen_before) {
    seen_waits_ = {wait_state.began_ns, waits};
    return {};
  }
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].wait.looks < seen_waits_.waits[i].wait.looks + kLooksBetween) return {};
  }
  std::string order;
  for (const PeerWait& waiting : waits)
    order += "rank " + std::to_string(waiting.rank) + " waits for rank " + std::to_string(waiting.wait.peer) + ", ";
  order += "rank " + std::to_string(rank_) + " waits for rank " + std::to_string(message_->root);
  return fail(
      deadlock(options_.name, {waits.front().rank, waits.front().call}, {rank_, describe_message(*message_)}, order));
}

}  // namespace tutti
