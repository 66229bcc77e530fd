// Measures limits of the machine between two cores.   floor_driver CORE CORE, then on stdin:
//   latency        ->  one-way latency of a cache line, in ns
//   read BYTES     ->  each core reads BYTES that the other has just written, both at once: us
//   take BYTES     ->  only the second core reads BYTES that the first has just written: us
//   copy BYTES     ->  each core copies BYTES of its own, both at once: us
//   add BYTES      ->  each core adds BYTES of its own to other BYTES of its own, both at once: us
//   pass BYTES     ->  the first core copies BYTES into slots, and the second copies them out: us
//   exchange BYTES ->  pass in both directions at once, and each core also copies BYTES of its own: us
// An optional second number is the number of bytes that each core writes, if that is more. Before each repetition each
// core writes its BYTES again, so that the other core reads from its cache.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

struct alignas(128) Line {
  std::atomic<std::uint32_t> value = 0;
};

// FIFO of slots from one core to the other: the minimum for a library whose processes do not map each other's buffers.
class Slots {
 public:
  static constexpr std::size_t kChunk = 32 << 10;

  void put(const char* from, std::size_t bytes) {
    const std::uint32_t next = posted_.value.load(std::memory_order_relaxed);
    while (next - taken_.value.load(std::memory_order_acquire) >= kSlots) __builtin_ia32_pause();
    std::memcpy(slot(next), from, bytes);
    posted_.value.store(next + 1, std::memory_order_release);
  }

  void get(char* to, std::size_t bytes) {
    const std::uint32_t next = taken_.value.load(std::memory_order_relaxed);
    while (posted_.value.load(std::memory_order_acquire) == next) __builtin_ia32_pause();
    std::memcpy(to, slot(next), bytes);
    taken_.value.store(next + 1, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t kSlots = 4;
  char* slot(std::uint32_t number) { return memory_.data() + number % kSlots * kChunk; }

  Line posted_, taken_;
  std::vector<char> memory_ = std::vector<char>(kSlots * kChunk);
};

// Spinning barrier of two threads.
class Barrier {
 public:
  void enter(int self) {
    const std::uint32_t generation = arrived_[self].value.load(std::memory_order_relaxed) + 1;
    arrived_[self].value.store(generation, std::memory_order_release);
    while (static_cast<std::int32_t>(arrived_[1 - self].value.load(std::memory_order_acquire) - generation) < 0)
      __builtin_ia32_pause();
  }

 private:
  Line arrived_[2];
};

class Floor {
 public:
  Floor(int first, int second) : cores_{first, second} {}

  double latency_ns() {
    constexpr std::uint32_t rounds = 20000;
    Line lines[2];
    double elapsed_us = 0;
    both([&](int self) {
      barrier_.enter(self);
      const auto start = Clock::now();
      for (std::uint32_t i = 1; i <= rounds; ++i) {
        if (self == 0) lines[0].value.store(i, std::memory_order_release);
        while (lines[1 - self].value.load(std::memory_order_acquire) != i) __builtin_ia32_pause();
        if (self == 1) lines[1].value.store(i, std::memory_order_release);
      }
      if (self == 0) elapsed_us = us_since(start);
    });
    return elapsed_us * 1e3 / rounds / 2;
  }

  // Returns the median over repetitions of the slower core's time.
  double transfer_us(const std::string& what, std::size_t bytes, std::size_t written_bytes) {
    const std::size_t words = std::max<std::size_t>(bytes / sizeof(float), 2);
    const std::size_t written = std::max(written_bytes / sizeof(float), words);
    const int repetitions = static_cast<int>(std::clamp<std::size_t>((32U << 20) / (words * 4), 3, 200));
    std::vector<double> times[2];
    both([&](int self) {
      if (from_[self].size() < written) from_[self].assign(written, 1);
      if (to_[self].size() < 2 * words) to_[self].assign(2 * words, 1);
      for (int i = 0; i < repetitions; ++i) {
        std::fill_n(from_[self].begin(), written, static_cast<float>(i));
        barrier_.enter(self);
        const auto start = Clock::now();
        what == "pass" || what == "exchange" ? pass(what, self, words, written) : move(what, self, words);
        times[self].push_back(std::max(us_since(start) - clock_us_, 0.0));
        barrier_.enter(self);
      }
    });
    std::vector<double> slower;
    for (int i = 0; i < repetitions; ++i) slower.push_back(std::max(times[0][i], times[1][i]));
    std::nth_element(slower.begin(), slower.begin() + repetitions / 2, slower.end());
    return slower[repetitions / 2];
  }

 private:
  void move(const std::string& what, int self, std::size_t words) {
    const float* const mine = from_[self].data();
    const float* const others = from_[1 - self].data();
    float* const to = to_[self].data();
    if (what == "copy") {
      std::memcpy(to, mine, words * sizeof(float));
    } else if (what == "add") {
      for (std::size_t i = 0; i < words; ++i) to[i] += mine[i];
    } else if (what == "read" || self == 1) {
      float sum = 0;
      for (std::size_t i = 0; i < words; ++i) sum += others[i];  // The compiler vectorizes this (-ffast-math).
      to[0] = sum;
    }
  }

  void pass(const std::string& what, int self, std::size_t words, std::size_t written) {
    const bool both_ways = what == "exchange";
    const std::size_t bytes = words * sizeof(float);
    const char* const mine = reinterpret_cast<const char*>(from_[self].data());
    const char* const others = written >= 2 * words ? mine + bytes : mine;  // Data for the other core.
    char* const to = reinterpret_cast<char*>(to_[self].data());
    const auto length = [&](std::size_t begin) { return std::min(bytes - begin, Slots::kChunk); };
    for (std::size_t at = 0; at < bytes + Slots::kChunk; at += Slots::kChunk) {
      if (at < bytes && (both_ways || self == 0)) slots_[self].put(others + at, length(at));
      if (at < bytes && both_ways) std::memcpy(to + at, mine + at, length(at));
      if (at == 0 || (!both_ways && self == 0)) continue;
      const std::size_t before = at - Slots::kChunk;  // Receive one chunk late, so that the other core has filled it.
      slots_[1 - self].get(to + (both_ways ? bytes : 0) + before, length(before));
    }
  }

  // Returns the time that reading the clock adds to a measurement.
  static double clock_cost_us() {
    double min = 1e9;
    for (int i = 0; i < 1000; ++i) {
      const auto start = Clock::now();
      min = std::min(min, us_since(start));
    }
    return min;
  }

  void both(const std::function<void(int)>& body) {
    std::thread second([&] {
      pin(cores_[1]);
      body(1);
    });
    pin(cores_[0]);
    body(0);
    second.join();
  }

  int cores_[2];
  const double clock_us_ = clock_cost_us();
  Barrier barrier_;
  Slots slots_[2];                      // [core that fills them]
  std::vector<float> from_[2], to_[2];  // Reused, since page faults of new memory take longer than the measurement.
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: floor_driver CORE CORE\n");
    return 2;
  }
  Floor floor(std::atoi(argv[1]), std::atoi(argv[2]));
  char line[128], what[32];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::size_t bytes = 0, written = 0;
    if (std::sscanf(line, "%31s %zu %zu", what, &bytes, &written) < 1) continue;
    const double result =
        std::strcmp(what, "latency") == 0 ? floor.latency_ns() : floor.transfer_us(what, bytes, written);
    std::printf("%.3f\n", result);
    std::fflush(stdout);
  }
  return 0;
}
