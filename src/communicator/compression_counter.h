// How many bytes compression formats have saved a communicator's rank. Written by the thread that runs its calls, read
// by any.
#pragma once

#include <cstdint>

#include "src/base/atomic.h"

namespace tutti {

// Bytes that a rank sends in a call: of the elements in memory, and of the messages that carry them.
struct Carried {
  std::uint64_t element_bytes = 0, message_bytes = 0;
};

struct CompressionStatistics {
  std::uint64_t rounded_calls = 0, raw_calls = 0;
  Carried carried;  // By the former.
};

class CompressionCounter {
 public:
  // Counts a call with compressed messages. Other calls are not counted in bytes.
  void add(const Carried& carried) {
    store_relaxed(&seen_.rounded_calls, seen_.rounded_calls + 1);
    store_relaxed(&seen_.carried.element_bytes, seen_.carried.element_bytes + carried.element_bytes);
    store_relaxed(&seen_.carried.message_bytes, seen_.carried.message_bytes + carried.message_bytes);
  }

  // Where the rank has made so many calls in all.
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
