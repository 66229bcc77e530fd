// How the collectives of a rank ran, for the user. One thread, which runs the calls, writes; any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/atomic.h"
#include "src/compression/format.h"

namespace tutti {

// Algorithm, protocol and format of a collective; empty names if it moved no messages.
struct LastRun {
  const char* algorithm = "";
  const char* protocol = "";
  const char* compression = "raw";
  double error = 0;  // Expected relative root mean square error for Gaussian numbers.
};

// The runs of a plan, by the rounding of its compressed messages.
struct ReportedRuns {
  LastRun nearest, stochastic;
  const LastRun& with(Rounding rounding) const { return rounding == Rounding::nearest ? nearest : stochastic; }
};

// Bytes that a rank sends in a call: size of the elements in memory, and size of the messages that carry them.
struct Carried {
  std::uint64_t element_bytes = 0, message_bytes = 0;
};

struct CompressionStatistics {
  std::uint64_t compressed_calls = 0, uncompressed_calls = 0;
  Carried carried;  // Sum over the compressed calls.
};

class RunStatistics {
 public:
  // Records how the last call ran. The object must not change, and must outlive this one.
  void record(const LastRun& ran) { last_run_.store(&ran, std::memory_order_release); }
  LastRun last_run() const { return *last_run_.load(std::memory_order_acquire); }

  // Adds a call with compressed messages. Other calls are not counted.
  void add(const Carried& carried) {
    store_relaxed(&statistics_.compressed_calls, statistics_.compressed_calls + 1);
    store_relaxed(&statistics_.carried.element_bytes, statistics_.carried.element_bytes + carried.element_bytes);
    store_relaxed(&statistics_.carried.message_bytes, statistics_.carried.message_bytes + carried.message_bytes);
  }
  // Returns the statistics, given the number of all calls of the rank.
  CompressionStatistics compression(std::uint64_t calls) const {
    CompressionStatistics statistics;
    statistics.compressed_calls = load_relaxed(&statistics_.compressed_calls);
    statistics.uncompressed_calls = calls < statistics.compressed_calls ? 0 : calls - statistics.compressed_calls;
    statistics.carried.element_bytes = load_relaxed(&statistics_.carried.element_bytes);
    statistics.carried.message_bytes = load_relaxed(&statistics_.carried.message_bytes);
    return statistics;
  }

  static constexpr LastRun kNoMessages{};

 private:
  std::atomic<const LastRun*> last_run_{&kNoMessages};
  CompressionStatistics statistics_;
};

}  // namespace tutti
