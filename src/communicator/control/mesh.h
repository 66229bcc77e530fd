// Control connections from this rank to every other rank of a communicator: they carry control messages, within a host
// also file descriptors, and show when a peer dies. The bootstrap connects and authenticates them.
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
  memory = 10,       // For all ranks, see Communicator::pass().
  abandonment = 11,  // See Mesh::abandon().
};

// Notifications to ranks of other hosts, which do not see the board.
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

// Frame of a control connection: fixed-width plain data.
struct Frame {
  std::uint32_t version = 1;
  FrameKind kind = FrameKind::lane;
  std::uint32_t bytes = 0;    // Size of the payload in use.
  std::uint32_t context = 0;  // Context of a connection to another host.
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
  // Returns a rank whose process ended without a goodbye, that is out of reach, or that has abandoned the communicator.
  // Does not wait. Any thread.
  std::optional<Rank> find_dead();
  bool is_dead(Rank peer);
  // Describes the end of a rank that is dead: "rank 1 died during ...".
  Status death(Rank peer, const std::string& when) const;
  // Why the peer has abandoned the communicator; fine if it has not, as far as was received.
  Status abandonment(Rank peer) const;
  bool has_left(Rank peer);  // As far as was received.
  // Tells the peers that this rank leaves in good order.
  void leave();
  // Tells the peers that this rank gives up creating the communicator, and why. Without that, peers that have created
  // it would take the closed contacts for the death of this rank.
  void abandon(const Status& reason);

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
  // Data of one receive, not checked yet.
  struct Arrival {
    ReceivedFrame received;
    bool whole = false;      // The length and version are those of a frame.
    bool truncated = false;  // The system could not give us the descriptor.
    bool surplus = false;    // There was more than one.
  };
  struct Peer {
    Contact contact;
    std::deque<Arrival> inbox;  // Found on a socket that has hung up, in order.
    bool left = false;          // Has said goodbye.
    Status abandoned;           // Why it gave up creating the communicator; fine: it has not.
  };
  std::optional<Arrival> pull(Rank rank);
  static std::optional<Arrival> pull_socket(Peer& peer);
  std::optional<Arrival> pull_note(Rank rank);
  static bool note_end(Peer& peer, const Frame& frame);
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
