// What a rank has to reach each other one by: control messages, descriptors within a host, and the notice of a peer's
// death. How they were connected and authenticated is the bootstrap's business.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/communicator/control/contact.h"
#include "src/communicator/hosts.h"
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

// What ranks of other hosts, who do not see the board, are told of what would be on it.
enum class NotificationKind : std::uint32_t {
  failure = 101,
  call = 102,     // The last call of the rank.
  leaving = 103,  // The same, and it makes no other.
};

struct Notification {
  Rank peer = 0;
  NotificationKind kind = NotificationKind::failure;
  std::vector<std::byte> payload;
};

// What travels: fixed-width plain data.
struct Frame {
  std::uint32_t version = 1;
  FrameKind kind = FrameKind::lane;
  std::uint32_t bytes = 0;    // Of the payload in use.
  std::uint32_t context = 0;  // Of a passage to another host.
  std::array<std::byte, 240> payload{};
};
static_assert(sizeof(Frame) == 256);

struct ReceivedFrame {
  Frame frame;
  File file;        // If one was passed along that is no contact.
  Contact contact;  // Likewise: this end of it.
};

class Mesh {
 public:
  // contacts[r] leads to rank r; contacts[self] is empty. Contacts to ranks of other hosts are connections.
  Mesh(Rank self, std::vector<Contact> contacts, Hosts hosts);
  // Closes all contacts; waits 3 s at most for what was sent.
  ~Mesh();
  Mesh(Mesh&&) = default;
  Mesh& operator=(Mesh&&) = delete;
  // For ranks in one process: pairs of sockets, and connections over loopback where they play ranks of several hosts,
  // with the carriers of the transport if it has such.
  static Result<std::vector<Mesh>> within_process(const Hosts& hosts, const std::string& transport = "");

  // Does not wait. False: the peer has left so many frames (100 or more) unread that no other fits; try again later.
  // `descriptor` is duplicated, -1: none. A peer that is gone takes everything: see find_dead().
  Result<bool> try_send(Rank peer, const Frame& frame, int descriptor = -1);
  // The same for those who cannot come back later: a full socket is a failure.
  Status send(Rank peer, const Frame& frame, int descriptor = -1);
  // The next frame from the peer, with the descriptor that its kind calls for, or none yet. A peer that is gone has
  // none after its last either.
  Result<std::optional<ReceivedFrame>> receive(Rank peer);
  // Sleeps until the peer has sent something or is gone, `timeout_ms` at most.
  void wait(Rank peer, int timeout_ms);
  // A rank whose process ended without a goodbye, or that is out of reach. Does not wait. Any thread.
  std::optional<Rank> find_dead();
  bool is_dead(Rank peer);
  // "rank 1 died during ...", with what is known of it.
  std::string death_report(Rank peer, const std::string& when) const;
  bool has_left(Rank peer);  // As far as was received.
  // Tells the peers that this rank leaves in good order.
  void leave();

  // ---- Contacts of further communicators ----
  // This end of one, and what to send the peer with a frame.
  Result<std::pair<Contact, Passage>> further(Rank peer);
  Result<bool> try_send(Rank peer, Frame frame, const Passage& passage);
  Status send(Rank peer, Frame frame, const Passage& passage);

  // ---- Ranks of other hosts ----
  bool is_remote(Rank peer) const { return peers_[peer].contact.is_remote(); }
  bool any_remote() const { return !remote_ranks_.empty(); }
  const std::vector<Rank>& remote_ranks() const { return remote_ranks_; }
  Rank leader() const { return hosts_.leader_of(self_); }  // The lowest rank on this host.
  const Hosts& hosts() const { return hosts_; }
  TcpConnection& connection(Rank peer) const { return peers_[peer].contact.connection(); }
  std::uint32_t context(Rank peer) const { return peers_[peer].contact.context(); }
  // Carries what lanes and messages to and from other hosts there are. Does not wait.
  void advance();
  void push();             // Only what goes out.
  bool has_notes() const;  // That came by the last advance().
  void drain_for(std::int64_t timeout_ms);
  void notify(NotificationKind kind, std::span<const std::byte> payload);  // All of them.
  std::optional<Notification> receive();

 private:
  // What came in one chunk, not yet judged.
  struct Arrival {
    ReceivedFrame received;
    bool whole = false;      // Of the length and version of a frame.
    bool truncated = false;  // The system could not give us the descriptor.
    bool surplus = false;    // There was more than one.
  };
  struct Peer {
    Contact contact;
    std::deque<Arrival> inbox;  // Found on a socket that has hung up, in order.
    bool left = false;          // Has said goodbye.
  };
  std::optional<Arrival> pull(Rank rank);
  static std::optional<Arrival> pull_socket(Peer& peer);
  std::optional<Arrival> pull_note(Rank rank);
  bool has_died(Rank rank);  // With the lock held.
  Status judge(Rank peer, const Arrival& arrival) const;
  Result<bool> send_note(Rank peer, const Frame& frame, int descriptor);

  Rank self_;
  Hosts hosts_;
  std::vector<Rank> remote_ranks_;
  std::vector<Peer> peers_;
  std::deque<Notification> notifications_;
  std::unique_ptr<std::mutex> mutex_;  // Guards what is received: any thread may look for the dead.
};

}  // namespace tutti
