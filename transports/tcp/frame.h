// Frames that two ranks send to each other over a connection: headers, each followed by its payload. Fixed-width
// plain data.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tutti {

enum class TcpFrameKind : std::uint16_t {
  lane = 1,     // Announces the sender's lane `lane` before its first message. Payload: its LaneSpec.
  message = 2,  // Message `number` of the sender's lane.
  credit = 3,   // Number of messages of the receiver's lane consumed so far: `number`.
  note = 4,     // A note for the owner of the context. `lane`: another context that the note passes, or 0.
  carrier = 5,  // First frame. Offers a carrier (payload: name, zero byte, address), or none (no payload).
  reaches = 6,  // Reports in `number` whether the sender reaches the other end by the carrier: 1 or 0.
  landing = 7,  // Payload: destination of messages of the receiver's lane, for the carrier.
  closed = 8,   // The sender has left the communicator and sends nothing more for it.
};

inline constexpr std::uint16_t kFrameVersion = 2;
inline constexpr std::uint32_t kMaxNoteBytes = 2304;  // Maximum payload of frames other than messages.

struct TcpFrameHeader {
  std::uint16_t version = kFrameVersion;
  TcpFrameKind kind = TcpFrameKind::message;
  std::uint32_t context = 0;    // Communicator of a lane or a note; both ranks are members.
  std::uint32_t lane = 0;       // Number of the lane, assigned by its writer for this connection.
  std::uint32_t bytes = 0;      // Size of the payload.
  std::uint64_t number = 0;     // Number of a message in its lane, or number of messages taken.
  std::uint32_t signature = 0;  // Signature of the call that a message belongs to.
  std::uint32_t check = 0;      // Checksum of the fields above.
};
static_assert(sizeof(TcpFrameHeader) == 32);

// Guards against errors that TCP's 16-bit checksum misses, and network cards that pass wrong bytes as correct.
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
