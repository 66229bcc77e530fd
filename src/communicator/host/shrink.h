// Shrink: some ranks of a communicator continue without the others. It uses only the control sockets, because
// excluded ranks may be dead, stopped or in a call, and the communicator may have failed. Every remaining rank
// proposes its list to all that remain, and passes one end of a new socket to each later rank. A rank that received
// the same list from all others consents to the first of them. With all consents, the first rank makes the board
// and passes it on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/host/links.h"

namespace tutti {

// Parameters of one rank in a shrink.
struct ShrinkTerms {
  Rank self = 0, ranks = 0;    // In the parent.
  std::vector<Rank> excluded;  // Sorted, each once, without this rank.
  std::int64_t timeout_ms = 0;
  const std::uint32_t* parent_abort = nullptr;  // Not 0: give up.
  const std::uint32_t* part_abort = nullptr;    // The same; may be null.
  std::string name;                             // For messages: " on gradients".
};

class Shrinking {
 public:
  Shrinking(Mesh& mesh, Links& links, ShrinkTerms terms);

  Rank self() const { return self_; }  // In the part.
  Rank ranks() const { return static_cast<Rank>(members_.size()); }

  // Block. Every failure names this rank or the one that it is the fault of, by its number in the parent.
  Status agree();
  Result<Board> share_board();
  // After both.
  Mesh take_mesh() { return std::move(*part_); }
  void conclude();
  // After a failure: reports the reason to ranks that wait for this one, and to those that have finished the shrink.
  void give_up(const Status& reason);

 private:
  Status open_sockets();
  Status propose(Rank member);
  Status propose_to_all();
  Result<bool> receive(Rank member);
  Status gave_up(Rank peer) const;
  Status disagreement(Rank peer) const;
  Result<ReceivedFrame> await(Rank member, FrameKind kind);
  // Fails when waiting for these ranks is pointless. A rank that comes after the others have given up waits for
  // their next attempt, and finally gets the reason why they gave up.
  Status keep_waiting(const std::vector<Rank>& missing, const char* action) const;

  Mesh& mesh_;
  Links& links_;
  Proposals& proposals_;
  const ShrinkTerms terms_;
  const ExcludedList list_;
  const Deadline deadline_;
  std::vector<Rank> members_;      // Members of the new communicator, by their ranks in the parent.
  Rank self_ = 0;                  // In the part.
  std::vector<Contact> contacts_;  // By member,
  std::vector<Passage> passages_;  // and its end of that while it has not been sent.
  std::vector<bool> proposed_;     // By member.
  std::optional<Mesh> part_;
};

}  // namespace tutti
