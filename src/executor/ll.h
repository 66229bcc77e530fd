// The LL protocol: a message is a sequence of 64-byte lines with 56 bytes of data and an 8-byte flag each. Data and
// notification arrive in one transfer, as in NCCL's LL and LL128 protocols.
//
// The last 8 data bytes precede the flag and are stored together with it. A line of up to 8 bytes has its data there
// only, so that the message is one 16-byte store. Data are contiguous in both cases, so a message of one line can be
// read in place.
#pragma once

#include <cstdint>
#include <cstring>

#include "src/executor/lane_io.h"

namespace tutti {

inline constexpr std::uint32_t kLineTail = 48;  // Offset of the last 16 bytes of a line: 8 of data, 8 of flag.

// Message number, direction and signature in one word, so that one comparison checks all. The direction distinguishes
// the two lanes of a shared slot: an answer differs from its request. The number has 39 bits. At a message every 50 ns
// it wraps after 7 hours, when all flags of that number are overwritten.
TUTTI_HOST_DEVICE inline std::uint64_t line_flag(const LaneState& lane, Signature signature) {
  return ((lane.next + 1) << 1 | lane.view.side) << 24 | (signature.word & 0xffffff);
}

TUTTI_HOST_DEVICE inline const std::uint64_t* flag_of(const std::byte* line) {
  return reinterpret_cast<const std::uint64_t*>(line + kLineTail + 8);
}

// Offset of the data in a line that holds `bytes`.
TUTTI_HOST_DEVICE inline std::uint32_t line_begin(std::uint64_t bytes) { return bytes <= 8 ? kLineTail : 0; }

// Copies a message out. Returns null if all lines have arrived, else the flag of the first missing line. A retry copies
// from the beginning.
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

// True if the message number matches but the signature is another call's. Not on the fast path.
TUTTI_HOST_DEVICE inline bool flag_mismatch(const std::uint64_t* word, std::uint64_t flag) {
  const std::uint64_t found = load_acquire(word);
  return found != flag && found >> 24 == flag >> 24;
}

}  // namespace tutti
