// Messages with tags of one rank of a communicator: sends, receives, and the links to the other ranks. The thread of
// MessageService progresses them, so that messages move while no thread of the program calls the library.
//
// Small messages are eager: they are sent at once and wait in the receiver's queue. Large messages are announced, and
// sent when a receive has matched them. The receiver's queue therefore has a bounded size for each sender.
//
// Each rank connects to the ranks to which it sends, at the first message. A link carries messages in one direction, so
// that two ranks that send to each other at the same time need not agree on a connection.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/acceptor.h"
#include "src/messages/link.h"
#include "src/messages/matching.h"

namespace tutti {

class MessageService;

// Interval of checks of the communicator while requests are incomplete.
inline constexpr std::int64_t kMessageCheckMs = 100;

// A rank and its communicator, as its endpoint sees them. Any thread may call the functions, also while the
// communicator runs calls; they must not call the endpoint.
struct MessageMembership {
  Rank rank = 0, ranks = 1;
  std::string name;  // For messages, such as " on gradients".
  Credentials credentials;
  Protection protection = Protection::none;  // Protection of links to ranks of other hosts.
  std::function<bool(Rank)> is_remote;
  // Returns where a rank accepts links; nullopt if that is not known yet.
  std::function<Result<std::optional<Endpoint>>(Rank)> address;
  // Returns the failure of the communicator. Checks whether a peer has died.
  std::function<Status()> failure;
  std::function<Status(Status)> fail;  // Fails the communicator, and returns the failure that all ranks report.
  std::function<bool(Rank)> has_left;  // Whether a rank has finalized the communicator.
};

// Returns the error of a message that starts after this rank has begun to leave the communicator of this name.
Status refuse_message(const std::string& name);

// Thread-safe.
class MessageEndpoint final : private MessageFrameHandler {
 public:
  // `listeners`: sockets at which this rank accepts links.
  MessageEndpoint(MessageMembership membership, std::vector<Socket> listeners, MessageService& service);
  ~MessageEndpoint();

  // Start a send or receive. Neither waits.
  Result<RequestPointer> send(const MessageCall& call);
  Result<RequestPointer> receive(const MessageCall& call);
  // Returns the message that a receive with these arguments would get; nullopt if none has arrived.
  Result<std::optional<MessageInfo>> probe(Rank source, std::uint64_t tag);
  // Ends the request with Code::aborted if no data of its message have been moved. Returns whether it is complete.
  bool cancel(const MessageRequest& request);

  // Ends incomplete requests with Code::invalid_usage, refuses further messages, and waits until sent data have
  // arrived, at most 3 s.
  void finish();
  // Ends incomplete requests and closes all links. Must not be called from the service thread.
  void close();

  // For the service thread. After poll(), it calls serve() with the vector that watch() has filled.
  void watch(std::vector<pollfd>& polled);
  Deadline deadline();
  void serve(const std::vector<pollfd>& polled);

 private:
  enum Side : std::uint32_t { kOut = 0, kIn = 1 };  // Link for messages to the peer, and from the peer.

  struct Peer {
    explicit Peer(Rank rank) : links{MessageLink(rank), MessageLink(rank)} {}
    std::array<MessageLink, 2> links;      // By Side.
    std::array<bool, 2> awaits_room = {};  // The thread polls for room to send.
    std::array<bool, 2> gone = {};         // No more data follow on this side: the peer has left.
    std::optional<Handshake> calling;      // Opens the out link.
    Deadline retry;                        // Time of the next attempt to open it.
    std::int64_t retry_ms = 1;
    std::uint64_t charged = 0;     // Charge of eager messages that the peer has not credited.
    std::uint64_t owed = 0;        // Charge of eager messages that this rank has not credited.
    Status broken;                 // Why a link ended without a goodbye; ok if none did.
    Deadline broken_until;         // The communicator fails then, unless the cause is found before.
    std::uint32_t left_ticks = 0;  // Checks so far that found that the peer has left.
    std::map<std::uint64_t, RequestPointer> announced;  // Sends that wait for the receiver's request, by number.
    std::map<std::uint64_t, RequestPointer> awaited;    // Receives that wait for the payload, by number.
    RequestPointer direct;                              // Receive whose eager message is arriving in its buffer.
    ArrivalPointer arriving;                            // Eager message that is arriving in the queue.
  };
  struct EndedRequest {
    RequestPointer request;
    Status status;
    MessageInfo info;
  };
  // Holds the lock, and completes the requests that ended meanwhile after its release.
  class Locked {
   public:
    explicit Locked(MessageEndpoint& endpoint) : endpoint_(endpoint), lock_(endpoint.mutex_) {}
    ~Locked();

   private:
    MessageEndpoint& endpoint_;
    std::unique_lock<std::mutex> lock_;
  };

  // All functions below except drained(), run_callbacks() and check_communicator() require the lock.
  Peer& peer(Rank rank) { return peers_.try_emplace(rank, rank).first->second; }
  Status check_open(const MessageCall& call);
  RequestPointer begin(const MessageCall& call);
  void begin_checks();
  void end(const RequestPointer& request, Status status, const MessageInfo& info = {});
  void end_all(const Status& status);
  RequestPointer withdraw(const MessageRequest& request);
  bool drained();
  Status left(Rank rank) const;
  Status lost(const MessageCall& call) const;
  void end_early(const RequestPointer& request, const Status& reason);  // With `reason`, unless this rank leaves.
  Status differ(const MessageCall& receive, const MessageCall& send) const;

  // endpoint_messages.cc: the protocol.
  Result<std::byte*> begin_frame(Rank rank, const MessageFrame& frame) override;
  Status end_frame(Rank rank, const MessageFrame& frame) override;
  std::byte* begin_eager(Peer& source, const MessageFrame& frame);
  void end_eager(Peer& source, const MessageFrame& frame);
  void accept(const ArrivalPointer& arrival, const RequestPointer& receive);
  void refuse(const MessageArrival& arrival, const RequestPointer& receive);
  void send_to_self(const RequestPointer& request, MessageFrame frame);
  void end_announced(Peer& target, const MessageFrame& frame);
  void credit(Peer& source, std::uint64_t bytes);
  void end_sends(Peer& target);
  void end_receives(Peer& source);

  // endpoint_links.cc: the connections.
  void open_link(Peer& target);  // Opens the out link, if it is not open.
  void retry_later(Peer& target);
  Result<std::optional<Handshake>> call(Rank rank);
  void proceed(Peer& target);
  void admit(AcceptedPeer accepted);
  void poll_for(std::uint32_t events, Peer& other, Side side, int operation);
  void push(Peer& other);
  void serve_links();
  void serve_link(Peer& other, Side side);
  void end_link(Peer& other, Side side);
  void break_link(Peer& other, Side side, Status reason);
  void note_departures();
  Status take_overdue();
  bool check_is_due();
  void check_communicator();
  void run_callbacks();

  const MessageMembership membership_;
  MessageService& service_;  // Used with the lock and only until the endpoint is closed.
  std::mutex mutex_;
  Socket epoll_;
  Acceptor acceptor_;
  std::map<Rank, Peer> peers_;
  MessageMatching matching_;
  std::vector<EndedRequest> ended_;
  std::vector<RequestPointer> callbacks_;  // Complete requests whose callbacks have not run.
  std::uint64_t next_number_ = 1;
  std::uint64_t incomplete_ = 0;  // Number of requests that are not complete.
  Deadline check_at_;             // Time of the next check of the communicator; never while idle.
  std::uint32_t idle_checks_ = 0;
  bool probed_ = false;   // A probe has found no message since the last check.
  Status trouble_;        // Why this rank cannot accept links; ok if it can.
  bool leaving_ = false;  // finish() has begun.
  Status closed_;         // Why all links are closed; ok if they are not.
};

}  // namespace tutti
