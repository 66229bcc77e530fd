// The small-message protocol: a message is a row of 64-byte lines, each with 56 bytes of data and its own flag, so
// that data and notice arrive in one transfer. After the idea of NCCL's LL and LL128 protocols.
//
// The last 8 bytes of a line's data lie right before the flag, and are stored with it. A line of up to 8 bytes has them
// there alone: such a message is one 16-byte store. Data lie in one chunk either way, so that a message of one line can
// be read where it is.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/executor/lane_io.h"

namespace tutti {

inline constexpr std::uint32_t kLineTail = 48;  // Where the last 16 bytes of a line begin: 8 of data, 8 of flag.

TUTTI_HOST_DEVICE inline std::uint64_t ll_lines_for(std::uint64_t bytes) { return (bytes + kLineData - 1) / kLineData; }

// Message number, direction and signature in one word, so that equality proves all. Lanes that share a slot differ in
// direction: an answer must not be mistaken for what it answers. The number has 39 bits: at a message each 50 ns it
// wraps after 7 hours, when all flags it could meet are long overwritten.
TUTTI_HOST_DEVICE inline std::uint64_t line_flag(const LaneState& lane, Signature signature) {
  return ((lane.next + 1) << 1 | lane.view.side) << 24 | (signature.word & 0xffffff);
}

TUTTI_HOST_DEVICE inline const std::uint64_t* flag_of(const std::byte* line) {
  return reinterpret_cast<const std::uint64_t*>(line + kLineTail + 8);
}

// Where the data of a line lie that holds `bytes` of them.
TUTTI_HOST_DEVICE inline std::uint32_t line_begin(std::uint64_t bytes) { return bytes <= 8 ? kLineTail : 0; }

// Copies the message out. Null if all its lines have arrived, else the flag of the first that has not; lines already
// copied are copied again at the next try.
TUTTI_HOST_DEVICE inline const std::uint64_t* ll_receive(const std::byte* line, std::uint64_t flag, std::byte* to,
                                                         std::uint64_t bytes) {
  for (; bytes >= kLineData; line += kLineBytes, to += kLineData, bytes -= kLineData) {
    if (load_acquire(flag_of(line)) != flag) return flag_of(line);
    std::memcpy(to, line, kLineData);
  }
  if (bytes == 0) return nullptr;
  if (load_acquire(flag_of(line)) != flag) return flag_of(line);
  std::memcpy(to, line + line_begin(bytes), bytes);
  return nullptr;
}

TUTTI_HOST_DEVICE inline void ll_send(std::byte* line, std::uint64_t flag, const std::byte* from, std::uint64_t bytes) {
  std::uint64_t word = 0;
  for (; bytes >= kLineData; line += kLineBytes, from += kLineData, bytes -= kLineData) {
    std::memcpy(line, from, kLineTail);
    std::memcpy(&word, from + kLineTail, 8);
    store_pair(reinterpret_cast<std::uint64_t*>(line + kLineTail), word, flag);
  }
  if (bytes == 0) return;
  if (bytes == 8) {
    std::memcpy(&word, from, 8);
  } else if (bytes < 8) {
    word = 0;
    std::memcpy(&word, from, bytes);
  } else {
    const std::uint64_t head = bytes < kLineTail ? bytes : kLineTail;
    std::memcpy(line, from, head);
    std::memcpy(&word, from + head, bytes - head);
  }
  store_pair(reinterpret_cast<std::uint64_t*>(line + kLineTail), word, flag);
}

// Another call's signature under the right number is a mismatch. Off the fast path.
TUTTI_HOST_DEVICE inline bool flag_mismatch(const std::uint64_t* word, std::uint64_t flag) {
  const std::uint64_t found = load_acquire(word);
  return found != flag && found >> 24 == flag >> 24;
}

}  // namespace tutti
