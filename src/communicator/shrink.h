// Shrink: some ranks of a communicator continue without the others. Uses only the control sockets, because excluded
// ranks may be dead, stopped or in a call, and the communicator may have failed. Each remaining rank proposes its list
// to all remaining ranks, and passes one end of a new socket to each later rank. A rank that has received the same list
// from all others sends its consent to the first remaining rank. After all consents, the first rank creates the board
// and passes it on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/membership/lane_connections.h"

namespace tutti {

// Parameters of one rank in a shrink.
struct ShrinkTerms {
  Rank self = 0, ranks = 0;    // Numbers in the parent.
  std::vector<Rank> excluded;  // Sorted, without duplicates, without this rank.
  std::int64_t timeout_ms = 0;
  const std::uint32_t* parent_abort = nullptr;  // A nonzero value aborts the shrink.
  const std::uint32_t* new_abort = nullptr;     // Like parent_abort, for the new communicator; may be null.
  std::string name;                             // For messages, such as " on gradients".
};

class Shrinking {
 public:
  Shrinking(Mesh& mesh, LaneConnections& lanes, ShrinkTerms terms);

  Rank self() const { return self_; }  // Rank in the new communicator.
  Rank ranks() const { return static_cast<Rank>(members_.size()); }

  // agree() and share_board() block. Errors name this rank or the rank that caused them, by its number in the parent.
  Status agree();
  Result<Board> share_board();
  // take_mesh() and conclude() must be called after both have succeeded.
  Mesh take_mesh() { return std::move(*part_); }
  void conclude();
  // Called after a failure. Reports the reason to ranks that wait for this rank, and to ranks that have finished the
  // shrink.
  void give_up(const Status& reason);

 private:
  Status open_sockets();
  Status propose(Rank member);
  Status propose_to_all();
  Result<bool> receive(Rank member);
  Status gave_up(Rank peer) const;
  Status disagreement(Rank peer) const;
  Result<ReceivedFrame> await(Rank member, FrameKind kind);
  // Fails if waiting for these ranks is pointless. A rank that joins after the others have given up waits for their
  // next attempt, and finally reports the reason of the first.
  Status keep_waiting(const std::vector<Rank>& missing, const char* action) const;

  Mesh& mesh_;
  LaneConnections& lanes_;
  Proposals& proposals_;
  const ShrinkTerms terms_;
  const ExcludedList list_;
  const Deadline deadline_;
  std::vector<Rank> members_;      // Members of the new communicator, by their ranks in the parent.
  Rank self_ = 0;                  // Rank in the new communicator.
  std::vector<Contact> contacts_;  // By member.
  std::vector<Passage> passages_;  // By member: the peer's end of the contact until it has been sent.
  std::vector<bool> proposed_;     // By member.
  std::optional<Mesh> part_;
};

}  // namespace tutti
