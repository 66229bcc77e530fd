// The wait that a rank shows to other ranks, so that they detect deadlocks and find the rank that holds up the others.
#pragma once

#include <cstdint>
#include <optional>

#include "src/base/rank.h"

namespace tutti {

// The call in which a rank waits.
enum class WaitingCall : std::uint32_t { collective, send, recv };

// One wait of a rank, as read by other ranks.
struct Wait {
  std::int64_t began_ns = 0;   // Identifies the wait: a rank begins no two waits at the same time.
  std::uint64_t sequence = 0;  // Number of collectives that the rank had begun, including the one that waits.
  Rank peer = 0;               // The rank for which it waits.
  WaitingCall call = WaitingCall::send;
  std::uint64_t polls = 0;  // Total number of unsuccessful polls in the rank's waits.
};
static_assert(sizeof(Wait) == 32);

// Lies in shared memory. One rank writes it and other ranks read it. `version` is odd while the rank writes the other
// fields.
struct WaitRecord {
  std::uint64_t version = 0;
  std::uint64_t polls = 0;
  std::int64_t began_ns = 0;  // 0: the rank has not waited yet.
  std::uint64_t sequence = 0;
  std::uint32_t peer = 0;
  WaitingCall call = WaitingCall::send;
};

// Shows that the rank still waits after an unsuccessful poll. Ignores `wait.polls`. Two calls with the same `began_ns`
// mean that the rank made no progress between them.
void show_wait(WaitRecord& own, const Wait& wait);

// Returns the last wait that the rank showed, which may be over. Returns nullopt if there is none, or while the rank
// writes it.
std::optional<Wait> read_wait(const WaitRecord& record);

}  // namespace tutti
