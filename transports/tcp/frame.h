// Frames that two ranks send to each other over a connection: headers, each followed by its payload. Fixed-width
// plain data.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tutti {

enum class TcpFrameKind : std::uint16_t {
  lane = 1,     // Announces lane `lane` of the sender (payload: its LaneSpec). Precedes its first message.
  message = 2,  // Message `number` of the sender's lane.
  credit = 3,   // So many messages of the receiver's lane have been taken: `number`.
  note = 4,     // For the owner of the context. `lane`: another context that comes with it, or 0.
  carrier = 5,  // Offers a carrier for messages (payload: its name, a zero byte, its address), or none. First frame.
  settled = 6,  // Whether the sender can reach the other end by it: `number`, 1 or 0.
  landing = 7,  // Where messages of the receiver's lane go, for the carrier.
  closed = 8,   // The sender has left the communicator: none of its lanes, messages and notes will come.
};

inline constexpr std::uint16_t kFrameVersion = 2;
inline constexpr std::uint32_t kMaxNoteBytes = 2304;  // Maximum payload of frames other than messages.

struct TcpFrameHeader {
  std::uint16_t version = kFrameVersion;
  TcpFrameKind kind = TcpFrameKind::message;
  std::uint32_t context = 0;    // Communicator of a lane or a note; both ranks are members.
  std::uint32_t lane = 0;       // As its writer counts its lanes on this connection.
  std::uint32_t bytes = 0;      // Size of the payload.
  std::uint64_t number = 0;     // Number of a message in its lane, or number of messages taken.
  std::uint32_t signature = 0;  // Signature of the call that a message belongs to.
  std::uint32_t check = 0;      // Checksum of the fields above.
};
static_assert(sizeof(TcpFrameHeader) == 32);

// TCP's own checksum has 16 bits, and network cards have been seen to get it right over wrong bytes.
inline std::uint32_t check_of(TcpFrameHeader header) {
  header.check = 0;
  std::uint64_t mixed = 0x9e3779b97f4a7c15;
  for (const std::uint64_t word : std::bit_cast<std::array<std::uint64_t, 4>>(header)) {
    mixed = (mixed ^ word) * 0xff51afd7ed558ccd;
    mixed ^= mixed >> 32;
  }
  return static_cast<std::uint32_t>(mixed);
}

}  // namespace tutti
