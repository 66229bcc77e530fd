// Connected sockets between the ranks of a host, one per pair: control messages, descriptors, and the notice of a
// peer's death. How they were connected and authenticated is the bootstrap's business.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/plan/problem.h"
#include "transports/shm/segment.h"

namespace tutti {

enum class FrameKind : std::uint32_t {
  lane = 1,
  board = 2,
  region = 3,
  goodbye = 4,
  socket = 5,
  withdrawal = 6,
  proposal = 7,  // These and the next two: to go on without some ranks, see proposals.h.
  refusal = 8,
  consent = 9,
  memory = 10,  // For all ranks, see Communicator::pass().
};

// What travels: fixed-width plain data.
struct Frame {
  std::uint32_t version = 1;
  FrameKind kind = FrameKind::lane;
  std::uint64_t bytes = 0;  // Of the payload in use.
  std::array<std::byte, 240> payload{};
};
static_assert(sizeof(Frame) == 256);

struct ReceivedFrame {
  Frame frame;
  File file;  // If one was passed along.
};

class Mesh {
 public:
  // sockets[r] leads to rank r (SOCK_SEQPACKET); none to oneself.
  Mesh(Rank self, std::vector<Socket> sockets);
  // Pairs of sockets for `ranks` ranks in one process.
  static Result<std::vector<Mesh>> within_process(Rank ranks);

  // Does not wait. False: the peer has left so many frames (100 or more) unread that no other fits; try again later.
  // `descriptor` is duplicated, -1: none. A peer that is gone takes everything: see find_dead().
  Result<bool> try_send(Rank peer, const Frame& frame, int descriptor = -1);
  // The same for those who cannot come back later: a full socket is a failure.
  Status send(Rank peer, const Frame& frame, int descriptor = -1);
  // The next frame from the peer, with the descriptor that its kind calls for, or none yet. A peer that is gone has
  // none after its last either.
  Result<std::optional<ReceivedFrame>> receive(Rank peer);
  // Sleeps until the peer has sent something or is gone, `timeout_ms` at most.
  void wait(Rank peer, int timeout_ms) const;
  // A rank whose process ended without a goodbye. Does not wait. Any thread.
  std::optional<Rank> find_dead();
  bool is_dead(Rank peer);
  bool has_left(Rank peer);  // As far as was received.
  // Tells the peers that this rank leaves in good order.
  void leave();

 private:
  // What came in one piece, not yet judged.
  struct Arrival {
    ReceivedFrame received;
    bool whole = false;      // Of the length and version of a frame.
    bool truncated = false;  // The system could not give us the descriptor.
    bool surplus = false;    // There was more than one.
  };
  struct Peer {
    Socket socket;
    std::deque<Arrival> inbox;  // Found on a socket that has hung up, in order.
    bool left = false;          // Has said goodbye.
  };
  static std::optional<Arrival> pull(Peer& peer);
  bool has_died(Rank rank);  // With the lock held.
  static Status judge(Rank peer, const Arrival& arrival);

  Rank self_;
  std::vector<Peer> peers_;
  std::unique_ptr<std::mutex> mutex_;  // Guards what is received: any thread may look for the dead.
};

}  // namespace tutti
