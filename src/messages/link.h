// Connection that carries the messages of one rank to another, and the receiver's frames back. Frames may be queued
// before it exists. The sender of the messages opens it, and sends nothing until the receiver has accepted it. The
// receiver may drop a connection whose handshake took too long, which the sender does not notice. No function blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "src/base/status.h"
#include "src/bootstrap/handshake.h"
#include "src/messages/frame.h"
#include "src/messages/matching.h"
#include "transports/tcp/stream.h"

namespace tutti {

// A frame to send. `request` owns its payload, if it has one, and is complete when the frame has been sent.
struct OutgoingFrame {
  MessageFrame frame;
  RequestPointer request;

  std::uint64_t bytes() const { return sizeof frame + (has_payload(frame) ? request->call().bytes() : 0); }
};

// Receiver of the frames of a link.
class MessageFrameHandler {
 public:
  // Called for the header of each frame. Returns the memory for its payload; any value if it has none.
  virtual Result<std::byte*> begin_frame(Rank peer, const MessageFrame& frame) = 0;
  // Called when the payload of a frame has arrived.
  virtual Status end_frame(Rank peer, const MessageFrame& frame) = 0;

 protected:
  ~MessageFrameHandler() = default;
};

// Not thread-safe.
class MessageLink {
 public:
  explicit MessageLink(Rank peer) : peer_(peer) {}

  Rank peer() const { return peer_; }
  void connect(AcceptedPeer accepted, Protection protection);
  bool connected() const { return stream_.has_value(); }
  bool opened() const { return opened_; }  // Connected, and the receiver has accepted it.
  void disconnect();                       // Keeps queued frames.
  int descriptor() const { return stream_ ? stream_->socket().get() : -1; }

  void put(const MessageFrame& frame, RequestPointer request = nullptr) {
    queue_.push_back({frame, std::move(request)});
  }
  // Removes and returns the frame of a request; nullopt if it is absent, or a part of it has been sent.
  std::optional<OutgoingFrame> withdraw(const MessageRequest& request);
  // Removes the announcement of message `number`. Returns false if it is absent, or a part of it has been sent.
  bool withdraw_announcement(std::uint64_t number);
  bool has_frames() const { return !queue_.empty(); }  // Whether frames are queued.
  // Sends as much as the connection accepts. Appends requests whose frames have been sent.
  Status push(std::vector<RequestPointer>& sent);
  bool awaits_room() const { return opened_ && unsent(); }  // Frames wait until the connection accepts more.
  bool in_frame() const { return written_ > 0; }            // A part of a frame has been sent.
  // Returns true if the kernel of the other end has all data that were sent, or the link is not connected.
  bool drained() const { return !stream_ || (!unsent() && stream_->unacknowledged() == 0); }
  // Drop queued frames and return their requests. take_unbegun() keeps a frame of which a part has been sent.
  std::vector<RequestPointer> take_unsent();
  std::vector<RequestPointer> take_unbegun();

  // Receives what has arrived, at most about 1 MiB. Returns false at the end of the connection.
  Result<bool> receive(MessageFrameHandler& handler);
  bool received_goodbye() const { return received_goodbye_; }

 private:
  bool unsent() const { return stream_ && (!queue_.empty() || stream_->held() > 0); }
  template <typename Matches>
  std::optional<OutgoingFrame> take_first(const Matches& matches);
  ssize_t send_front();
  Status parse(MessageFrameHandler& handler);

  Rank peer_;
  std::optional<ByteStream> stream_;
  bool opened_ = false;
  std::deque<OutgoingFrame> queue_;
  std::uint64_t written_ = 0;  // Bytes of the first queued frame that have been sent.
  std::vector<std::byte> staging_;
  std::size_t begin_ = 0, end_ = 0;  // Range of staging_ that has not been parsed.
  MessageFrame frame_;               // Frame whose payload is arriving.
  std::byte* at_ = nullptr;          // Destination of the next byte of its payload.
  std::uint64_t missing_ = 0;        // Bytes that its payload lacks.
  bool received_goodbye_ = false;
};

}  // namespace tutti
