// A stream of messages over an authenticated connection. The MAC of each message includes its sequence number. Altered,
// dropped, repeated or reordered messages are detected.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/handshake.h"
#include "src/bootstrap/secrets.h"

namespace tutti {

enum class Message : std::uint16_t {
  go = 1,        // Rendezvous to rank: all ranks have joined. Payload: GoRecord.
  reached = 2,   // Rank to rendezvous: this rank has connected to all its peers.
  complete = 3,  // Rendezvous to rank: all ranks have.
  failure = 4,   // Payload: FailureRecord.
  data = 5,      // Part of an exchange over the tree.
  id = 6,        // Payload: the unique id.
  host = 7,      // Rendezvous to rank: the process that runs the rendezvous. Payload: HostRecord.
  ping = 8,      // In both directions: a liveness check; the other end sends a pong.
  pong = 9,
};

struct ReceivedMessage {
  Message kind = Message::data;
  std::vector<std::byte> payload;
};

class ControlChannel {
 public:
  ControlChannel() = default;
  explicit ControlChannel(AcceptedPeer accepted);

  // Writes as much as the socket accepts at once; flush() writes the rest. Neither waits.
  Status send(Message kind, Bytes payload = {});
  Status send_failure(const Status& status);
  Status flush();
  bool unsent() const { return written_ < outgoing_.size(); }

  // Returns the next message, or nullopt if it is incomplete. Fails on payloads over `max_bytes` bytes, and when the
  // peer disconnects.
  Result<std::optional<ReceivedMessage>> receive(std::size_t max_bytes);

  bool connected() const { return static_cast<bool>(socket_); }
  int descriptor() const { return socket_.get(); }
  short events() const;

 private:
  struct Header {
    std::uint32_t bytes = 0;
    Message kind = Message::data;
    std::uint16_t version = 1;
  };
  static_assert(sizeof(Header) == 8);
  enum class Direction : std::uint8_t { from_caller, to_caller };

  Result<bool> fill(std::size_t bytes);  // True once `incoming_` holds this many.
  Digest mac(Direction direction, std::uint64_t number, Bytes message) const;

  Socket socket_;
  Secret session_{};
  bool opened_by_us_ = false;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<std::byte> outgoing_;
  std::size_t written_ = 0;
  std::vector<std::byte> incoming_;
};

// Returns the error that a failure message contains.
Status failure_in(const ReceivedMessage& message);
inline constexpr std::size_t kFailureBytes = 1008;

}  // namespace tutti
