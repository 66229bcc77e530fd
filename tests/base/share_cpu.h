// Waits of tests that poll.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace tutti::test {

// Lets other threads run between two polls. A yield beside busy programs lasts for their time slices, several
// milliseconds each. After a long yield, all threads of the process therefore sleep instead for some time.
inline void share_cpu() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLongYield = std::chrono::microseconds(100);
  constexpr auto kContention = std::chrono::milliseconds(10);
  constexpr auto kSleep = std::chrono::microseconds(20);
  static std::atomic<Clock::time_point> contended_until{};
  const auto before = Clock::now();
  if (before < contended_until.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kSleep);
    return;
  }
  std::this_thread::yield();
  const auto now = Clock::now();
  if (now - before > kLongYield) contended_until.store(now + kContention, std::memory_order_relaxed);
}

}  // namespace tutti::test
