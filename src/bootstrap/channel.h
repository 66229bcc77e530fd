// A stream of messages over an authenticated connection. Each carries a MAC over all that identifies it, its number
// included, so none can be altered, dropped, repeated or reordered unnoticed.
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
  host = 7,      // Rendezvous to rank: whose process runs the rendezvous. Payload: HostRecord.
  question = 8,  // In both directions: answer, so that I know that you run.
  answer = 9,
};

struct ReceivedMessage {
  Message kind = Message::data;
  std::vector<std::byte> payload;
};

class ControlChannel {
 public:
  ControlChannel() = default;
  explicit ControlChannel(Greeted greeted);

  // Writes what the socket takes at once; flush() writes the rest. Neither waits.
  Status send(Message kind, Bytes payload = {});
  Status send_failure(const Status& status);
  Status flush();
  bool unsent() const { return written_ < outgoing_.size(); }

  // The next message if it is there whole; a payload of more than `longest` bytes is an error, and so is the end.
  Result<std::optional<ReceivedMessage>> receive(std::size_t longest);

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

  Result<bool> fill(std::size_t bytes);  // Whether `incoming_` holds that many.
  Digest mac(Direction direction, std::uint64_t number, Bytes message) const;

  Socket socket_;
  Secret session_{};
  bool called_ = false;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<std::byte> outgoing_;
  std::size_t written_ = 0;
  std::vector<std::byte> incoming_;
};

// What failed elsewhere, as a message told it.
Status failure_in(const ReceivedMessage& message);
inline constexpr std::size_t kFailureBytes = 1008;

}  // namespace tutti
