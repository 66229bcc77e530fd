// Thread group for an LL128 line on the host: one thread.
#pragma once

#include <cstring>

#include "src/base/atomic.h"
#include "src/executor/thread_block/ll128_line.h"

namespace tutti {

class Ll128Threads {
 public:
  static constexpr std::uint32_t kThreads = 1;  // Per line.

  TUTTI_HOST_DEVICE Ll128Threads(std::uint32_t thread, std::uint32_t thread_count)
      : thread_(thread), thread_count_(thread_count) {}

  // The group's lines are first(), first() + step(), ...
  TUTTI_HOST_DEVICE std::uint32_t first() const { return thread_; }
  TUTTI_HOST_DEVICE std::uint32_t step() const { return thread_count_; }
  // leads(): whether this thread waits for the flag. all_done(): whether the leader's wait succeeded.
  TUTTI_HOST_DEVICE bool leads() const { return true; }
  TUTTI_HOST_DEVICE bool all_done(bool done) const { return done; }

  // At most kLl128LineData bytes.
  TUTTI_HOST_DEVICE void put(std::byte* line, std::uint64_t flag, const std::byte* from, std::uint32_t bytes) const {
    std::memcpy(line, from, bytes);
    store_release(reinterpret_cast<std::uint64_t*>(line + kLl128LineData), flag);
  }
  TUTTI_HOST_DEVICE void take(const std::byte* line, std::byte* to, std::uint32_t bytes) const {
    std::memcpy(to, line, bytes);
  }

 private:
  const std::uint32_t thread_, thread_count_;
};

}  // namespace tutti
