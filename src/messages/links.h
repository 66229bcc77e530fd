// Links of one rank to the other ranks of a communicator, and from them: opens, accepts and polls them, and notices why
// they end. A rank opens a link to another rank for its first message. Two ranks that send to each other have two
// links, so that they need not agree on one.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/bootstrap/acceptor.h"
#include "src/messages/link.h"
#include "src/messages/membership.h"

namespace tutti {

class MessageService;

enum class LinkSide : std::uint8_t { out = 0, in = 1 };  // Carries messages to the peer, or from the peer.

// Receiver of frames and events of all links. Must not call the functions of MessageLinks that end links.
class MessageLinkUser : public MessageFrameHandler {
 public:
  virtual void end_sent(const RequestPointer& request) = 0;  // The payload of the request has been sent.
  // The peer has left the communicator: no data follow on this side.
  virtual void end_side(Rank peer, LinkSide side) = 0;

 protected:
  ~MessageLinkUser() = default;
};

struct MessageSockets {
  Socket epoll;
  std::vector<Socket> listeners;  // Sockets at which this rank accepts links.
};

// Not thread-safe. No function blocks.
class MessageLinks {
 public:
  // Wakes the service when it must call serve().
  MessageLinks(const MessageMembership& membership, MessageSockets sockets, MessageService& service,
               MessageLinkUser& user);

  MessageLink& link(Rank rank, LinkSide side) { return side_of(peer(rank), side).link; }
  // Whether the peer has left, and all data on this side have been read.
  bool ended(Rank rank, LinkSide side) { return side_of(peer(rank), side).ended; }
  // Makes the service thread open the out link to a peer, unless it is open. Attempts end when no frame is queued.
  void open(Rank rank);
  std::vector<Rank> peers() const;  // Ranks to which any function above was applied.
  void push(Rank rank);             // Sends as much as both links to the peer accept.

  void leave();          // Queues a goodbye on all links.
  bool drained() const;  // Whether all connected links are drained; see MessageLink.
  void close();          // Ends all links, and accepts no more. Not between watch() and serve().

  // Must be called at each check of the communicator for a peer that has left it. The peer has sent all its messages
  // before, which are read between the first and the second check. At the second check, sides without a link end.
  void note_departure(Rank rank);
  // Returns true once after links have ended without a goodbye: the cause must be looked for at once.
  bool take_alarm() { return std::exchange(alarm_, false); }
  bool any_broken() const;
  // Returns why a link ended without a goodbye, if the communicator has had time to find the cause; otherwise ok.
  Status overdue() const;

  // For the service thread. After poll(), it calls serve() with the vector that watch() has filled. It then calls
  // call() for each of due(), with the address at which the peer accepts links.
  void watch(std::vector<pollfd>& polled);
  Deadline deadline() const;
  Status serve(const std::vector<pollfd>& polled);
  std::vector<Rank> due() const;  // Peers to which a link must be opened now.
  void call(Rank rank, Result<std::optional<SocketAddress>> address);

 private:
  struct Side {
    MessageLink link;
    bool awaits_room = false;  // The thread polls for room to send.
    bool ended = false;
  };
  struct Peer {
    explicit Peer(Rank rank) : sides{Side{MessageLink(rank)}, Side{MessageLink(rank)}} {}
    std::array<Side, 2> sides;               // By LinkSide.
    std::optional<Handshake> connecting;     // Opens the out link.
    Deadline retry;                          // Time of the next attempt to open it.
    std::int64_t retry_ms = 1;               // Time between this attempt and the following one.
    Status broken;                           // Why a link ended without a goodbye; ok if none did.
    Deadline broken_until;                   // Time at which the communicator fails for that reason.
    std::uint32_t checks_after_leaving = 0;  // Calls of note_departure().
  };
  Peer& peer(Rank rank);
  static void put_goodbye(Peer& other);  // On both links.
  static Side& side_of(Peer& peer, LinkSide side) { return peer.sides[static_cast<std::size_t>(side)]; }

  Result<std::optional<Handshake>> start_call(Rank rank, const std::optional<SocketAddress>& address) const;
  void retry_later(Peer& target);
  void proceed(Peer& target);
  Status accept(const std::vector<pollfd>& polled);
  void admit(AcceptedPeer accepted);
  void note_shortage(const Status& shortage);
  void poll_for(std::uint32_t events, Peer& other, LinkSide side, int operation);
  void serve_link(Peer& other, LinkSide side);
  void disconnect(Peer& other, LinkSide side);
  void break_link(Peer& other, LinkSide side, Status reason);
  void end_side(Peer& other, LinkSide side);

  const MessageMembership& membership_;
  MessageService& service_;  // Used only until the links are closed.
  MessageLinkUser& user_;
  Socket epoll_;
  Acceptor acceptor_;
  std::map<Rank, Peer> peers_;
  bool alarm_ = false;
  bool short_ = false;  // A lack of descriptors or memory has been reported, and has not ended.
  bool leaving_ = false;
  bool closed_ = false;
};

}  // namespace tutti
