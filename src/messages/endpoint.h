// Messages with tags of one rank of a communicator: starts sends and receives, completes them, and ends them with the
// communicator. MessageProtocol and MessageLinks move the messages. The thread of MessageService calls them, so that
// messages move while no thread of the program calls the library.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/messages/links.h"
#include "src/messages/membership.h"
#include "src/messages/protocol.h"

namespace tutti {

class MessageService;

// Interval of checks of the communicator while requests are incomplete.
inline constexpr std::int64_t kMessageCheckMs = 100;

// Thread-safe.
class MessageEndpoint final {
 public:
  // `listeners`: sockets at which this rank accepts links.
  static Result<std::shared_ptr<MessageEndpoint>> create(MessageMembership membership, std::vector<Socket> listeners,
                                                         MessageService& service);
  MessageEndpoint(MessageMembership membership, MessageSockets sockets, MessageService& service);
  MessageEndpoint(const MessageEndpoint&) = delete;

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
  // Holds the lock, and completes the requests that ended meanwhile after its release.
  class Locked {
   public:
    explicit Locked(MessageEndpoint& endpoint) : endpoint_(endpoint), lock_(endpoint.mutex_) {}
    ~Locked();

   private:
    MessageEndpoint& endpoint_;
    std::unique_lock<std::mutex> lock_;
  };

  // These require the lock.
  Status check_open() const;
  void begin_checks();
  bool check_is_due();
  std::vector<Rank> watched_ranks() const;
  Status take_reason();
  void end_all(const Status& reason);

  // These take the lock.
  bool drained();
  Status serve_links(const std::vector<pollfd>& polled);
  Status open_links();
  void check_communicator();
  void run_callbacks();

  const MessageMembership membership_;
  MessageService& service_;  // Used with the lock and only until the endpoint is closed.
  std::mutex mutex_;
  MessageLinks links_;
  MessageProtocol protocol_;
  std::vector<RequestPointer> callbacks_;  // Complete requests whose callbacks have not run.
  Deadline report_at_;                     // Time of the next report of the address. Only the service thread uses it.
  Deadline reported_until_;                // The address is not reported any more then.
  Deadline check_at_;                      // Time of the next check of the communicator; never while idle.
  std::uint32_t idle_checks_ = 0;
  bool probed_ = false;           // A probe has found no message since the last check.
  bool probed_from_any_ = false;  // A probe for any rank has found no message.
  Status trouble_;                // Why this rank cannot serve links; ok if it can.
  bool leaving_ = false;          // finish() has begun.
  Status closed_;                 // Why all links are closed; ok if they are not.
};

}  // namespace tutti
