// Counts the bytes that compression has saved on one rank. One thread, which runs the calls, writes; any thread reads.
#pragma once

#include <cstdint>

#include "src/base/atomic.h"

namespace tutti {

// Bytes that a rank sends in a call: size of the elements in memory, and size of the messages that carry them.
struct Carried {
  std::uint64_t element_bytes = 0, message_bytes = 0;
};

struct CompressionStatistics {
  std::uint64_t rounded_calls = 0, raw_calls = 0;
  Carried carried;  // Sum over the compressed calls.
};

class CompressionCounter {
 public:
  // Adds a call with compressed messages. Other calls are not counted.
  void add(const Carried& carried) {
    store_relaxed(&seen_.rounded_calls, seen_.rounded_calls + 1);
    store_relaxed(&seen_.carried.element_bytes, seen_.carried.element_bytes + carried.element_bytes);
    store_relaxed(&seen_.carried.message_bytes, seen_.carried.message_bytes + carried.message_bytes);
  }

  // Returns the statistics, given the number of all calls of the rank.
  CompressionStatistics of(std::uint64_t calls) const {
    CompressionStatistics statistics;
    statistics.rounded_calls = load_relaxed(&seen_.rounded_calls);
    statistics.raw_calls = calls < statistics.rounded_calls ? 0 : calls - statistics.rounded_calls;
    statistics.carried.element_bytes = load_relaxed(&seen_.carried.element_bytes);
    statistics.carried.message_bytes = load_relaxed(&seen_.carried.message_bytes);
    return statistics;
  }

 private:
  CompressionStatistics seen_;
};

}  // namespace tutti
