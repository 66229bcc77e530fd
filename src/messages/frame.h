// Frames of a connection that carries the messages of one rank to another. A payload follows its header. Fixed-width
// plain data.
#pragma once

#include <cstdint>

#include "src/base/types.h"

namespace tutti {

enum class MessageFrameKind : std::uint16_t {
  // From the sender of messages.
  eager = 1,       // A message. Payload: its elements.
  announced = 2,   // A message whose elements follow when the receiver requests them.
  payload = 3,     // Payload: the elements of announced message `number`.
  withdrawal = 4,  // Announced message `number` is cancelled.
  // From the receiver.
  request = 5,  // Requests the elements of announced message `number`.
  refusal = 6,  // The receive that matches message `number` has another `count` or `type`, which this frame contains.
  credit = 7,   // Eager messages that charged `count` bytes have left the receiver's queue.
  welcome = 8,  // The receiver has accepted the link. The sender sends nothing before.
  // From both.
  goodbye = 9,  // The rank leaves the communicator and sends nothing more.
};

inline constexpr std::uint16_t kMessageFrameVersion = 2;

struct MessageFrame {
  std::uint16_t version = kMessageFrameVersion;
  MessageFrameKind kind = MessageFrameKind::eager;
  std::uint32_t type = 0;  // A DataType.
  std::uint64_t tag = 0;
  std::uint64_t count = 0;   // Elements.
  std::uint64_t number = 0;  // Chosen by the sender of the message, unique per sender.
};
static_assert(sizeof(MessageFrame) == 32);

// Maximum payload of an eager message.
inline constexpr std::uint64_t kMaxEagerBytes = 64 * 1024;
// Maximum charge of a sender's eager messages in the queue of a receiver. Further messages are announced.
inline constexpr std::uint64_t kEagerWindow = 4U << 20;

// Memory that a message of this size may occupy at the receiver.
constexpr std::uint64_t charge_of(std::uint64_t bytes) { return bytes + 256; }

constexpr bool has_payload(const MessageFrame& frame) {
  return frame.kind == MessageFrameKind::eager || frame.kind == MessageFrameKind::payload;
}

constexpr std::uint64_t message_bytes(const MessageFrame& frame) {
  return frame.count * size_of(static_cast<DataType>(frame.type));
}

}  // namespace tutti
