// Sleep of a thread until another thread wakes it.
#include "src/base/sleep_word.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/own_cpus.h"

namespace tutti::test {
namespace {

constexpr std::int64_t kForeverNs = 20'000'000'000;

void bind_to(std::uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(SleepWord, EndsSleepAtTimeout) {
  std::uint32_t word = 1;
  sleep_on(&word, 1'000'000);
  EXPECT_EQ(word, 1U);
}

TEST(SleepWord, PreventsSleep_WhenThreadWasWokenBefore) {
  std::uint32_t word = 1;
  wake_if_asleep(&word);
  EXPECT_EQ(word, 0U);
  const std::int64_t began_ns = now_ns();
  sleep_on(&word, kForeverNs);
  EXPECT_LT(now_ns() - began_ns, kForeverNs);
}

// Returns whether the kernel has put the thread to sleep.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(") S ") != std::string::npos;
}

TEST(SleepWord, WakesSleepingThread) {
  std::uint32_t word = 1;
  std::atomic<pid_t> id = 0;
  std::int64_t slept_ns = 0;
  std::thread sleeper([&] {
    id = ::gettid();
    const std::int64_t began_ns = now_ns();
    while (load_acquire(&word) != 0 && now_ns() - began_ns < kForeverNs) sleep_on(&word, kForeverNs);
    slept_ns = now_ns() - began_ns;
  });
  const Deadline deadline = Deadline::after_ms(10'000);
  while ((id == 0 || !sleeps(id)) && !deadline.passed()) std::this_thread::yield();
  wake_if_asleep(&word);
  sleeper.join();
  EXPECT_LT(slept_ns, kForeverNs);
}

// In each turn, one thread posts and the other one prepares to sleep, at about the same time. The sleeper sees the
// post, or the waker sees the sleeper.
TEST(HeavyFence, LetsSleeperOrWakerSeeTheOther) {
  if (!allow_heavy_fence()) GTEST_SKIP() << "the kernel has no expedited membarrier";
  const std::vector<std::uint32_t> cpus = own_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "the threads must run at the same time, which takes two CPUs";
  struct alignas(128) Word {
    std::uint32_t value = 0;
  };
  constexpr std::uint32_t kTurns = 3'000;
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Word posted, asleep, begun[2];
  std::vector<std::uint8_t> saw_post(kTurns + 1), saw_sleeper(kTurns + 1);
  const auto begin_turn = [&](int self, std::uint32_t turn, std::mt19937& random) {
    store_release(&begun[self].value, turn);
    for (int polls = 0; load_acquire(&begun[1 - self].value) < turn; ++polls) {
      if (polls > 1000) std::this_thread::yield();
    }
    for (auto left = random() % 16; left > 0; --left) pause();
  };
  std::thread waker([&] {
    bind_to(cpus[0]);
    std::mt19937 random(seed);
    for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
      begin_turn(0, turn, random);
      store_release(&posted.value, turn);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // As in wake_if_asleep().
      saw_sleeper[turn] = load_relaxed(&asleep.value) == turn;
    }
  });
  std::thread sleeper([&] {
    bind_to(cpus[1]);
    std::mt19937 random(seed + 1);
    for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
      begin_turn(1, turn, random);
      store_relaxed(&asleep.value, turn);
      heavy_fence();
      saw_post[turn] = load_acquire(&posted.value) == turn;
    }
  });
  waker.join();
  sleeper.join();
  for (std::uint32_t turn = 1; turn <= kTurns; ++turn) EXPECT_TRUE(saw_post[turn] || saw_sleeper[turn]) << turn;
}

}  // namespace
}  // namespace tutti::test
