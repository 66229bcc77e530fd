// Messages that two ends exchange by UCX, and addresses that they exchange over their connection before. Fixed-
// width plain data.
//
// A worker accepts messages from any sender. The token in front of each message is a random number that only the
// other end has received.
#pragma once

#include <cstdint>

#include "transports/carrier.h"

namespace tutti {

// UCP's numbers of active messages.
inline constexpr unsigned kUcxMessage = 0;  // A UcxMessage, and the data.
inline constexpr unsigned kUcxWord = 1;     // A UcxWord.

inline constexpr std::uint32_t kUcxVersion = 2;

// In front of the worker's address, of `bytes`.
struct UcxAddressHead {
  std::uint32_t version = kUcxVersion;
  std::uint32_t bytes = 0;
  std::uint64_t token = 0;
};
static_assert(sizeof(UcxAddressHead) == 16);

// Description of a lane for its writer.
struct UcxLanding {
  std::uint32_t on_device = 0;  // 1: its slots are no memory of the host, and messages have to be fetched.
};
static_assert(sizeof(UcxLanding) == 4);

struct UcxMessage {
  std::uint64_t token = 0;
  MessageHead head;
};
static_assert(sizeof(UcxMessage) == 32);

enum class UcxWordKind : std::uint32_t {
  credit = 1,    // So many messages of the receiver's lane have been taken: `taken`.
  question = 2,  // The sender is about to leave, and waits for
  answer = 3,    // this: what has arrived.
  farewell = 4,  // It has left, and answers no more.
};

struct UcxWord {
  std::uint64_t token = 0;
  std::uint64_t arrived = 0;  // Messages of all lanes, so far.
  std::uint64_t taken = 0;
  std::uint32_t lane = 0;
  UcxWordKind kind = UcxWordKind::credit;
};
static_assert(sizeof(UcxWord) == 32);

}  // namespace tutti
