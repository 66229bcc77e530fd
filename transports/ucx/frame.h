// Formats of UCX messages between two ends, and of addresses exchanged over TCP before. Fixed-width plain data.
//
// A worker accepts messages from any sender. Each message therefore begins with a token: a random number that only the
// other end has received.
#pragma once

#include <cstdint>

#include "transports/carrier.h"

namespace tutti {

// Identifiers of UCP active messages.
inline constexpr unsigned kUcxMessage = 0;  // A UcxMessage, then the data.
inline constexpr unsigned kUcxControl = 1;  // A UcxControl.

inline constexpr std::uint32_t kUcxVersion = 2;

// Header of a worker address of `bytes` bytes.
struct UcxAddressHead {
  std::uint32_t version = kUcxVersion;
  std::uint32_t bytes = 0;
  std::uint64_t token = 0;
};
static_assert(sizeof(UcxAddressHead) == 16);

// Data about a lane for its writer.
struct UcxLanding {
  std::uint32_t on_device = 0;  // 1: the slots are in device memory, so messages must use rendezvous.
};
static_assert(sizeof(UcxLanding) == 4);

struct UcxMessage {
  std::uint64_t token = 0;
  MessageHead head;
};
static_assert(sizeof(UcxMessage) == 32);

enum class UcxControlKind : std::uint32_t {
  credit = 1,   // `taken` messages of the receiver's lane have been consumed.
  ping = 2,     // The sender is about to close, and requests an answer.
  pong = 3,     // Reply to a question; `arrived` is what matters.
  goodbye = 4,  // The sender has closed, and does not answer questions any more.
};

struct UcxControl {
  std::uint64_t token = 0;
  std::uint64_t arrived = 0;  // Messages received so far, over all lanes.
  std::uint64_t taken = 0;
  std::uint32_t lane = 0;
  UcxControlKind kind = UcxControlKind::credit;
};
static_assert(sizeof(UcxControl) == 32);

}  // namespace tutti
