// The wait that a rank shows to the other ranks of its host, so that ranks that wait for each other can be found.
#pragma once

#include <cstdint>
#include <optional>

#include "src/base/rank.h"

namespace tutti {

// One wait of a rank, as others read it.
struct Wait {
  std::int64_t began_ns = 0;   // Identifies the wait: a rank begins no two waits at the same time.
  std::uint64_t sequence = 0;  // Collectives that the rank had begun by then, including the one it waits in.
  Rank peer = 0;               // The rank that it waits for.
  bool in_collective = false;  // Otherwise in a send or recv.
  std::uint64_t looks = 0;     // How often the rank has looked around in its waits so far.
};

// In shared memory. One rank writes it and others read it. `version` is odd while the rank writes the other fields.
struct WaitRecord {
  std::uint64_t version = 0;
  std::uint64_t looks = 0;
  std::int64_t began_ns = 0;  // 0: the rank has not waited yet.
  std::uint64_t sequence = 0;
  std::uint32_t peer = 0;
  std::uint32_t in_collective = 0;
};

// Shows that the rank still waits, after a poll that found nothing; `wait.looks` is ignored. Two calls with the same
// `began_ns` mean that the rank made no progress between them.
void show_wait(WaitRecord& own, const Wait& wait);

// The last wait that the rank showed, which may be over; nothing if there is none, or while the rank writes it.
std::optional<Wait> read_wait(const WaitRecord& record);

}  // namespace tutti
