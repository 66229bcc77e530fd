// Control connections from this rank to every other rank of a communicator. They carry control messages, pass file
// descriptors within a host, and show when a peer dies. The bootstrap connects and authenticates them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/unique_id.h"
#include "src/communicator/call/hosts.h"
#include "src/communicator/control/contact.h"
#include "src/plan/problem.h"
#include "transports/carrier.h"
#include "transports/shm/segment.h"

namespace tutti {

enum class FrameKind : std::uint32_t {
  lane = 1,
  board = 2,
  region = 3,
  goodbye = 4,
  socket = 5,
  withdrawal = 6,
  proposal = 7,  // proposal, refusal and consent serve to continue without some ranks; see proposals.h.
  refusal = 8,
  consent = 9,
  memory = 10,       // For all ranks; see Communicator::pass().
  abandonment = 11,  // See Mesh::abandon().
};

// Notifications to ranks of other hosts, which do not see the board.
enum class NotificationKind : std::uint32_t {
  failure = 101,
  call = 102,          // The last call of the rank.
  leaving = 103,       // The last calls of the rank, which makes no further calls.
  listener = 104,      // An Address; see Mesh::listener(). receive() does not return this kind.
  wait_request = 105,  // The sender asks for the wait of each rank. Only ranks that wait answer.
  wait = 106,          // The answer: a Wait.
  rejection = 107,     // A RejectionRecord.
};

struct Notification {
  Rank peer = 0;
  NotificationKind kind = NotificationKind::failure;
  std::vector<std::byte> payload;
};

// Frame of a control connection: plain data of fixed width.
struct Frame {
  std::uint32_t version = 1;
  FrameKind kind = FrameKind::lane;
  std::uint32_t bytes = 0;    // Bytes of the payload in use.
  std::uint32_t context = 0;  // For a contact to another host: number of its context.
  std::array<std::byte, 240> payload{};
};
static_assert(sizeof(Frame) == 256);

// Returns a frame with a payload of plain data; its size must be fixed.
template <typename Payload>
Frame frame_of(FrameKind kind, const Payload& payload) {
  Frame frame = {.kind = kind, .bytes = sizeof payload};
  std::memcpy(frame.payload.data(), &payload, sizeof payload);
  return frame;
}

// Returns nullopt if the payload has another size.
template <typename Payload>
std::optional<Payload> payload_of(const Frame& frame) {
  Payload payload;
  if (frame.bytes != sizeof payload) return std::nullopt;
  std::memcpy(&payload, frame.payload.data(), sizeof payload);
  return payload;
}

// An error in a payload, with as much of its text as fits.
struct ErrorPayload {
  std::uint32_t code = 0;
  std::uint32_t length = 0;
  std::array<char, 224> text{};

  ErrorPayload() = default;
  explicit ErrorPayload(const Status& status);
  std::optional<Status> status() const;  // Returns nullopt if the payload is invalid.
};
static_assert(sizeof(ErrorPayload) == 232);

struct ReceivedFrame {
  Frame frame;
  File file;        // The descriptor passed along, unless it is a contact.
  Contact contact;  // The contact passed along: this rank's end.
};

class Mesh {
 public:
  // contacts[r] connects to rank r; contacts[self] is empty. Contacts to ranks of other hosts are connections.
  Mesh(Rank self, std::vector<Contact> contacts, Hosts hosts);
  // Closes all contacts. Waits at most 3 s for sent data to arrive.
  ~Mesh();
  Mesh(Mesh&&) = default;
  Mesh& operator=(Mesh&&) = delete;
  // Creates the meshes of ranks in one process. Ranks of one host are connected by socket pairs, ranks of emulated
  // hosts by loopback connections, which use `carriers` unless that is null.
  static Result<std::vector<Mesh>> within_process(const Hosts& hosts, CarrierSource* carriers = nullptr);

  // Sends without waiting. Returns false if the peer has left so many frames (at least 100) unread that the socket is
  // full; try again later. Duplicates `descriptor`; -1: none. Succeeds if the peer is dead; see find_dead().
  Result<bool> try_send(Rank peer, const Frame& frame, int descriptor = -1);
  // Like try_send(), but fails if the socket is full. For callers that cannot try again.
  Status send(Rank peer, const Frame& frame, int descriptor = -1);
  // Returns the next frame from the peer, with its descriptor if the kind has one; nullopt if no frame has arrived. A
  // dead peer's frames can still be received.
  Result<std::optional<ReceivedFrame>> receive(Rank peer);
  // Sleeps until the peer has sent something or has died, for at most `timeout_ms`.
  void wait(Rank peer, int timeout_ms);
  // Returns a rank whose process ended without a goodbye, that is unreachable, or that has abandoned the communicator.
  // Does not wait. Thread-safe.
  std::optional<Rank> find_dead();
  bool is_dead(Rank peer);
  // Describes the death of a rank: "rank 1 died during ...".
  Status death(Rank peer, const std::string& when) const;
  // Returns why the peer has abandoned the communicator; ok if no abandonment was received.
  Status abandonment(Rank peer) const;
  bool has_left(Rank peer);  // Whether a goodbye was received.
  // Sends a goodbye to all peers.
  void leave();
  // Reports to the peers that this rank gives up creating the communicator, with the reason. Otherwise, peers that have
  // created it would take the closed contacts for the death of this rank.
  void abandon(const Status& reason);

  // Creates a contact to `peer`. Returns this rank's end, and the other end to send to the peer with a frame.
  Result<std::pair<Contact, Passage>> new_contact(Rank peer);
  Result<bool> try_send(Rank peer, Frame frame, const Passage& passage);
  Status send(Rank peer, Frame frame, const Passage& passage);

  // ---- Ranks of other hosts ----
  bool is_remote(Rank peer) const { return peers_[peer].contact.is_remote(); }
  bool any_remote() const { return !remote_ranks_.empty(); }
  const std::vector<Rank>& remote_ranks() const { return remote_ranks_; }
  Rank ranks_here() const { return static_cast<Rank>(peers_.size() - remote_ranks_.size()); }
  Rank first_local_rank() const { return hosts_.first_rank_of_host(self_); }
  const Hosts& hosts() const { return hosts_; }
  std::vector<TcpConnection*> connections() const;  // To all ranks of other hosts.
  TcpConnection& connection(Rank peer) const { return peers_[peer].contact.connection(); }
  std::uint32_t context(Rank peer) const { return peers_[peer].contact.context(); }
  // Progresses lanes and messages to and from other hosts, without waiting. Returns whether any data moved.
  bool advance();
  void push();             // Sends only.
  bool has_notes() const;  // Whether the last advance() received notes.
  bool drained();          // Sends pending data without waiting. Returns whether all were sent. Thread-safe.
  void drain_for(std::int64_t timeout_ms);
  void notify(NotificationKind kind, std::span<const std::byte> payload);  // To all ranks of other hosts.
  void notify(Rank peer, NotificationKind kind, std::span<const std::byte> payload);
  std::optional<Notification> receive();
  // Reports to ranks of other hosts the address at which this rank accepts connections for messages with tags.
  // drained() sends what this call could not send. listener() returns the address that a rank has reported; nullopt if
  // none has arrived. Both are thread-safe.
  void report_listener(const Address& address);
  std::optional<Address> listener(Rank peer);

 private:
  // Data of one receive, before it is checked.
  struct Arrival {
    ReceivedFrame received;
    bool whole = false;      // Length and version are those of a frame.
    bool truncated = false;  // The kernel could not pass the descriptor.
    bool surplus = false;    // There was more than one descriptor.
  };
  struct Peer {
    Contact contact;
    std::deque<Arrival> inbox;  // Frames found on a socket that has hung up, in order.
    bool left = false;          // A goodbye was received.
    Status abandoned;           // Why the peer gave up creating the communicator; ok if it did not.
    std::optional<Address> listener;
  };
  std::optional<Arrival> pull(Rank rank);
  static std::optional<Arrival> pull_socket(Peer& peer);
  std::optional<Arrival> pull_note(Rank rank);
  static bool note_end(Peer& peer, const Frame& frame);
  bool has_died(Rank rank);  // Requires the lock.
  Status validate(Rank peer, const Arrival& arrival) const;
  Result<bool> send_note(Rank peer, const Frame& frame, int descriptor);

  Rank self_;
  Hosts hosts_;
  std::vector<Rank> remote_ranks_;
  std::vector<Peer> peers_;
  std::deque<Notification> notifications_;
  std::unique_ptr<std::mutex> mutex_;  // Guards received data, since any thread may call find_dead().
};

}  // namespace tutti
