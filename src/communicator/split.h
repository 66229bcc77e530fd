// Split: the ranks of one color become a communicator of their own. They are already connected and authenticated, so
// they pass new sockets over the existing ones. No rank gets the sub-communicator before all ranks have sent their
// consent to its first rank. Until then, each of them detects a failure of the parent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/membership/control_plane.h"

namespace tutti {

// Arguments of one rank of a split, which all ranks gather: plain data of fixed width.
struct SplitArguments {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// Returns the members of the sub-communicator of this color, by rank in the parent, in the new order.
std::vector<Rank> members_of(const std::vector<SplitArguments>& arguments, std::int32_t color);

// Waits for a socket or memory that the peer passes to this rank. Other frames, such as addresses of lanes, may arrive
// first, and the peer may be late. Does not report the death of a peer to the other ranks.
Result<ReceivedFrame> await_passed(ControlPlane& control, Rank peer, FrameKind kind, const Deadline& deadline);

class Splitting {
 public:
  // `members` includes this rank.
  Splitting(ControlPlane& parent, std::vector<Rank> members, std::int64_t timeout_ms);

  Rank self() const { return self_; }  // Rank in the sub-communicator.

  // Connects the members, and returns the board of the sub-communicator. Blocks. Errors name ranks by their numbers in
  // the parent.
  Result<Board> join();
  // Must be called after join() has succeeded.
  Mesh take_mesh() { return std::move(*mesh_); }
  // Called after a failure. Reports the reason, which has been published in the parent, to ranks that may already have
  // the sub-communicator.
  void give_up(const Status& reason);

 private:
  Status exchange_contacts(std::vector<Contact>& contacts);
  // Waits for a frame from rank `from` of the sub-communicator.
  Result<ReceivedFrame> await(Rank from, FrameKind kind);
  std::string during_split() const;

  ControlPlane& parent_;
  const std::vector<Rank> members_;  // By rank in the sub-communicator.
  const Rank self_;
  const Deadline deadline_;
  std::optional<Mesh> mesh_;
};

}  // namespace tutti
