// Connects plans to transports: creates the lanes that plans name, exchanges their addresses, and keeps their ends
// until the communicator is destroyed. All plans that name the same lane share it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/control/proposals.h"
#include "src/communicator/control/regions.h"
#include "src/executor/lane_io.h"
#include "transports/shm/shm_transport.h"

namespace tutti {

class LaneConnections {
 public:
  LaneConnections(Mesh& mesh, PeerRegions& regions, const Board& board, Rank self)
      : mesh_(mesh), regions_(regions), board_(board), transport_(self), self_(self) {}

  // Creates the memory of a lane that this rank owns, and sends its address to the other end. If the socket is full,
  // ready() sends it later. Does not wait. Does nothing if the lane was offered before.
  Status offer(const LaneSpec& spec);
  // Returns whether both ends can be used; false until the owner's address has arrived or has been sent. Does not wait.
  Result<bool> ready(const LaneSpec& spec);
  // Processes all received control messages of the peer: addresses of lanes, regions, sockets, proposals.
  Status collect(Rank peer);
  // Returns an object that the peer has passed and collect() has received: a contact for a split, or memory; nullopt if
  // there is none.
  std::optional<ReceivedFrame> take_passed(Rank peer, FrameKind kind);
  Proposals& proposals() { return proposals_; }
  // Returns an end of a ready lane: of the forward lane if `writer` and `tag` are those of `spec`, otherwise of its
  // partner.
  LaneState* end(const LaneSpec& spec, Rank writer, std::uint16_t tag, LaneEnd which);

 private:
  // A rank uses one end of each lane, except for a lane to itself.
  struct Ends {
    LaneState writing, reading, partner_writing, partner_reading;
  };
  static Rank owner(const LaneSpec& spec);
  Rank other(const LaneSpec& spec) const { return spec.writer == self_ ? spec.reader : spec.writer; }
  Status attach_remote(const LaneSpec& spec);
  // make() and notify() return whether the address was sent to the other end.
  Result<bool> make(const LaneSpec& spec);
  Result<bool> notify(const LaneSpec& spec, const LaneAddress& address);
  Status process(Rank peer, ReceivedFrame received);
  Status attach(const LaneSpec& spec, Rank owner, const LaneAddress& address);

  Mesh& mesh_;
  PeerRegions& regions_;
  const Board& board_;
  ShmTransport transport_;
  Rank self_;
  std::map<LaneSpec, std::unique_ptr<Ends>> ends_;
  std::map<LaneSpec, LaneAddress> made_;       // Own lanes whose address has not been sent yet.
  std::map<LaneSpec, LaneAddress> addresses_;  // Received and not attached yet.
  std::map<std::pair<Rank, FrameKind>, std::deque<ReceivedFrame>> passages_;  // Received and not taken yet.
  Proposals proposals_;                                                       // Proposals collected so far.
  std::set<std::pair<Rank, std::uint32_t>> passed_;                           // Segments whose descriptor the peer has.
};

}  // namespace tutti
