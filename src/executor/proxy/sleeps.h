// How long a proxy thread may sleep before it looks for messages of thread blocks, which cannot wake it.
#pragma once

#include <cstdint>

namespace tutti {

inline constexpr std::int64_t kSpinNs = 100'000;  // After the last message; a peer's answer takes less.
inline constexpr std::int64_t kMaxCallSleepNs = 50'000;
// Replays of graphs are not announced. For this time after the last message, the next replay is expected soon.
inline constexpr std::int64_t kReplayNs = 1'000'000'000;
inline constexpr std::int64_t kMaxGraphSleepNs = 1'000'000;     // A replay may begin after a pause.
inline constexpr std::int64_t kMaxIdleSleepNs = 1'000'000'000;  // Nothing requires a wake-up.

struct ProxyState {
  bool in_call = false;       // An announced call has not ended.
  bool graphs = false;        // A graph that was captured exists.
  bool failed = false;        // No thread block waits for the proxy.
  bool lost = false;          // The call may never end, because nobody waits for it.
  std::int64_t still_ns = 0;  // Time since the last message or announcement.
};

// Returns 0 if the thread must poll at once.
constexpr std::int64_t longest_sleep_ns(const ProxyState& state) {
  if (state.failed) return kMaxIdleSleepNs;
  const bool messages_are_near = state.in_call || (state.graphs && state.still_ns < kReplayNs);
  if (!messages_are_near) return state.graphs ? kMaxGraphSleepNs : kMaxIdleSleepNs;
  if (state.still_ns < kSpinNs) return 0;
  return state.lost ? kMaxGraphSleepNs : kMaxCallSleepNs;
}

}  // namespace tutti
