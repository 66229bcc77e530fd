// The small-message protocol: a message is a row of 64-byte lines, each with 56 bytes of data and its own flag, so
// that data and notice arrive in one transfer. After the idea of NCCL's LL and LL128 protocols.
//
// In a line, the first 8 bytes of data lie right before the flag: a message of up to 8 bytes is one 16-byte store.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/executor/lane_io.h"

namespace tutti {

inline constexpr std::uint32_t kLineTail = 48;  // Where the last 16 bytes of a line begin: 8 of data, 8 of flag.

TUTTI_HOST_DEVICE inline std::uint64_t lines_for(std::uint64_t bytes) { return (bytes + kLineData - 1) / kLineData; }

// Message number, direction and signature in one word, so that equality proves all. Lanes that share a slot differ in
// direction: an answer must not be mistaken for what it answers. The number has 39 bits: at a message each 50 ns it
// wraps after 7 hours, when all flags it could meet are long overwritten.
TUTTI_HOST_DEVICE inline std::uint64_t line_flag(const LaneState& lane, Signature signature) {
  return ((lane.next + 1) << 1 | lane.view.side) << 24 | (signature.word & 0xffffff);
}

TUTTI_HOST_DEVICE inline const std::uint64_t* flag_of(const std::byte* line) {
  return reinterpret_cast<const std::uint64_t*>(line + kLineTail + 8);
}

// Copies the message out. Null if all its lines have arrived, else the flag of the first that has not; lines already
// copied are copied again at the next try.
inline const std::uint64_t* lines_receive(const std::byte* line, std::uint64_t flag, std::byte* to,
                                          std::uint64_t bytes) {
  for (; bytes > 0; line += kLineBytes) {
    if (load_acquire(flag_of(line)) != flag) return flag_of(line);
    const std::uint64_t head = bytes < 8 ? bytes : 8;
    if (head == 8) {
      std::memcpy(to, line + kLineTail, 8);
    } else {
      std::memcpy(to, line + kLineTail, head);
    }
    const std::uint64_t rest = bytes - head < kLineTail ? bytes - head : kLineTail;
    if (rest == kLineTail) {
      std::memcpy(to + 8, line, kLineTail);
    } else if (rest > 0) {
      std::memcpy(to + 8, line, rest);
    }
    to += head + rest;
    bytes -= head + rest;
  }
  return nullptr;
}

inline void lines_send(std::byte* line, std::uint64_t flag, const std::byte* from, std::uint64_t bytes) {
  for (; bytes > 0; line += kLineBytes) {
    std::uint64_t word = 0;
    const std::uint64_t head = bytes < 8 ? bytes : 8;
    if (head == 8) {
      std::memcpy(&word, from, 8);
    } else {
      std::memcpy(&word, from, head);
    }
    const std::uint64_t rest = bytes - head < kLineTail ? bytes - head : kLineTail;
    if (rest == kLineTail) {
      std::memcpy(line, from + 8, kLineTail);
    } else if (rest > 0) {
      std::memcpy(line, from + 8, rest);
    }
    store_pair(reinterpret_cast<std::uint64_t*>(line + kLineTail), word, flag);
    from += head + rest;
    bytes -= head + rest;
  }
}

// Another call's signature under the right number is a mismatch. Off the fast path.
inline bool flag_mismatch(const std::uint64_t* word, std::uint64_t flag) {
  const std::uint64_t found = load_acquire(word);
  return found != flag && found >> 24 == flag >> 24;
}

}  // namespace tutti
