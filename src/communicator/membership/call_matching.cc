#include "src/communicator/membership/call_matching.h"

#include <algorithm>
#include <string>

#include "src/base/clock.h"
#include "src/communicator/membership/disagreement.h"

namespace tutti {
namespace {

// A rank publishes its call record right after its first send.
constexpr std::int64_t kRecordMs = 100;
constexpr std::int64_t kRemoteRecordMs = 1000;

}  // namespace

Status CallMatching::compare() const {
  const CallRecord* const record = current_.record();
  if (record == nullptr) return {};
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    const auto theirs = membership_.board.call(peer, record->sequence);
    if (theirs && theirs->signature != record->signature) return mismatch(peer, *theirs);
  }
  return {};
}

Status CallMatching::mismatch(Rank peer, const CallRecord& theirs) const {
  return failures_.fail(disagreement(membership_.options.name, {membership_.rank, *current_.record()}, {peer, theirs}));
}

// The peer's record is present or arrives soon, unless the peer is far ahead.
Status CallMatching::mismatch_with(Rank peer) const {
  const bool remote = membership_.mesh.is_remote(peer);
  const Deadline soon = Deadline::after_ms(remote ? kRemoteRecordMs : kRecordMs);
  if (remote) notifications_.report_calls(NotificationKind::call);
  const std::uint64_t sequence = current_.record()->sequence;
  do {
    if (membership_.spans_hosts) notifications_.poll();
    if (membership_.board.failed()) return membership_.board.failure(membership_.rank);
    TUTTI_CHECK_OK(compare());
  } while (membership_.board.last(peer) < sequence && !soon.passed());
  TUTTI_CHECK_OK(compare());  // The record may have arrived after the last check.
  return failures_.fail(invalid_usage(
      "ranks disagree on collective " + std::to_string(sequence) + ": rank " + std::to_string(membership_.rank) +
      " is in " + current_.describe() + ", and what rank " + std::to_string(peer) +
      " sent belongs to another call, or two threads use one communicator at once" +
      (membership_.options.tune == Tune::off ? "" : ", or only some ranks name a TUTTI_TUNE_FILE")));
}

Status CallMatching::compare_recent(ComparedPeers peers) const {
  const Board& board = membership_.board;
  const std::uint64_t own = board.last(membership_.rank);
  for (Rank peer = 0; peer < membership_.ranks; ++peer) {
    if (peers == ComparedPeers::on_other_hosts && !membership_.mesh.is_remote(peer)) continue;
    const std::uint64_t last = std::min(own, board.last(peer));
    for (std::uint64_t call = last; call > 0 && call + kCallHistory > last; --call) {
      const auto ours = board.call(membership_.rank, call);
      const auto theirs = board.call(peer, call);
      if (ours && theirs && ours->signature != theirs->signature)
        return disagreement(membership_.options.name, {membership_.rank, *ours}, {peer, *theirs});
    }
  }
  return {};
}

}  // namespace tutti
