// Plans meet wires here: the lanes that a plan names are made, their addresses exchanged, and their ends kept for as
// long as the communicator lives, for all plans that name them alike.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "src/communicator/control/mesh.h"
#include "src/communicator/control/proposals.h"
#include "src/communicator/control/regions.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/executor/lane_io.h"
#include "transports/shm/shm_transport.h"

namespace tutti {

class Links {
 public:
  Links(Mesh& mesh, PeerRegions& regions, Rank self) : mesh_(mesh), regions_(regions), transport_(self), self_(self) {}

  // Makes the memory of a lane that this rank owns, and tells the other end, or leaves that to ready() where the other
  // end has no room for news. Does not wait; nothing if done before.
  Status offer(const LaneSpec& spec);
  // Whether both ends can be used; false while the owner's address has not come, or not gone out. Does not wait.
  Result<bool> ready(const LaneSpec& spec);
  // Takes in all control messages that have come from the peer: addresses of lanes, regions, sockets,
  // proposals.
  Status collect(Rank peer);
  // Returns an object that the peer has passed and that was collected: a contact for a split, or memory. Nothing if
  // there is none.
  std::optional<ReceivedFrame> take_passed(Rank peer, FrameKind kind);
  Proposals& proposals() { return proposals_; }
  // An end of a ready lane: of the forward lane if `writer` and `tag` are the spec's own, else of its partner.
  LaneState* end(const LaneSpec& spec, Rank writer, std::uint16_t tag, LaneEnd which);

 private:
  // A rank uses one end of each, but for a lane to itself.
  struct Link {
    LaneState writing, reading, partner_writing, partner_reading;
  };
  static Rank owner(const LaneSpec& spec);
  Rank other(const LaneSpec& spec) const { return spec.writer == self_ ? spec.reader : spec.writer; }
  Status attach_remote(const LaneSpec& spec);
  // Both return whether the other end has been told.
  Result<bool> make(const LaneSpec& spec);
  Result<bool> notify(const LaneSpec& spec, const LaneAddress& address);
  Status take_in(Rank peer, ReceivedFrame received);
  Status attach(const LaneSpec& spec, Rank owner, const LaneAddress& address);

  Mesh& mesh_;
  PeerRegions& regions_;
  ShmTransport transport_;
  Rank self_;
  std::map<LaneSpec, std::unique_ptr<Link>> links_;
  std::map<LaneSpec, LaneAddress> made_;       // Ours, of which the other end has not been told.
  std::map<LaneSpec, LaneAddress> addresses_;  // Come, not yet attached.
  std::map<std::pair<Rank, FrameKind>, std::deque<ReceivedFrame>> passages_;  // Come, not yet taken.
  Proposals proposals_;                                                       // As far as collected.
  std::set<std::pair<Rank, std::uint32_t>> passed_;                           // Segments whose descriptor the peer has.
};

}  // namespace tutti
