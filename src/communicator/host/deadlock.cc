// Detects ranks of one host that wait for each other: one in a send or recv, the others in a collective that it has not
// called. Without this, all of them would wait until the timeout.
//
// A rank in a send or recv follows the waits that other ranks show, from the rank that it waits for onwards. If the
// waits lead back to the first rank, they form a cycle. A rank in such a wait makes no progress until the rank that it
// waits for does. Collectives run their steps in order. Calls of one communicator run one after the other. A group
// starts a collective only after the messages before it are done.
//
// A cycle seen once is no proof. The waits are read one after the other, and a rank may not yet have polled for data
// that has already arrived. Therefore the same waits must be seen twice, and each rank must have completed a poll in
// between. Then all waits existed at the same time, and no data in flight could end them.
#include <algorithm>
#include <string>

#include "src/communicator/control/wait_record.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/host/message_signature.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

// Counter difference that guarantees a complete poll in between, since the first of the polls may have begun before the
// counter was read.
constexpr std::uint64_t kLooksBetween = 3;

}  // namespace

void HostCommunicator::show_wait(Rank peer, const WaitState& wait_state) const {
  if (membership_.board.ranks_here() == 1 ||
      (control_.current.record() == nullptr && control_.current.message() == nullptr))
    return;
  tutti::show_wait(membership_.board.entry(membership_.rank).wait,
                   {.began_ns = wait_state.began_ns,
                    .sequence = control_.current.sequence(),
                    .peer = peer,
                    .in_collective = control_.current.record() != nullptr});
}

// Returns the waits from the peer of this rank's message back to this rank; empty if they do not lead to this rank.
std::vector<HostCommunicator::PeerWait> HostCommunicator::waits_for_this_rank() const {
  std::vector<PeerWait> waits;
  for (Rank rank = control_.current.message()->root; rank != membership_.rank; rank = waits.back().wait.peer) {
    if (membership_.mesh.is_remote(rank) || waits.size() == membership_.ranks) return {};
    const auto wait = read_wait(membership_.board.entry(rank).wait);
    if (!wait || !wait->in_collective || wait->sequence <= control_.current.sequence() ||
        wait->peer >= membership_.ranks)
      return {};
    // A rank that has completed the collective may have sent the data for which the previous rank waits.
    if (!waits.empty() && wait->sequence > waits.back().wait.sequence) return {};
    const auto call = membership_.board.call(rank, wait->sequence);
    if (!call) return {};
    // Messages of an all_to_all_v do not wait for each other, so the other messages may still make progress.
    if (call->collective == kUnequalCollective && wait->peer != membership_.rank) return {};
    waits.push_back({rank, *wait, *call});
  }
  return waits;
}

Status HostCommunicator::notice_deadlock(const WaitState& wait_state) {
  if (control_.current.message() == nullptr || control_.current.record() != nullptr ||
      membership_.board.last(control_.current.message()->root) <= control_.current.sequence())
    return {};
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
  order += "rank " + std::to_string(membership_.rank) + " waits for rank " +
           std::to_string(control_.current.message()->root);
  return control_.failures.fail(deadlock(membership_.options.name, {waits.front().rank, waits.front().call},
                                         {membership_.rank, describe_message(*control_.current.message())}, order));
}

}  // namespace tutti
