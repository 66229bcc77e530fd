// Monotonic time, and the deadline that every wait checks.
#pragma once

#include <time.h>

#include <cstdint>
#include <limits>

namespace tutti {

inline std::int64_t now_ns() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// A point in time. The default is never reached.
struct Deadline {
  std::int64_t at_ns = std::numeric_limits<std::int64_t>::max();

  static Deadline after_ms(std::int64_t timeout_ms) {  // Never, if timeout_ms is <= 0 or overflows the clock.
    const std::int64_t now = now_ns();
    const std::int64_t max_ms = (std::numeric_limits<std::int64_t>::max() - now) / 1'000'000;
    return timeout_ms <= 0 || timeout_ms > max_ms ? Deadline{} : Deadline{now + timeout_ms * 1'000'000};
  }
  bool passed() const { return now_ns() >= at_ns; }
  std::int64_t left_ms() const {  // At least 0. One day without a deadline, which fits poll(2).
    constexpr std::int64_t day_ms = 86'400'000;
    const std::int64_t left = at_ns - now_ns();
    if (left <= 0) return 0;
    return left / 1'000'000 < day_ms ? left / 1'000'000 + 1 : day_ms;
  }
};

}  // namespace tutti
