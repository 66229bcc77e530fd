// Thread group for an LL128 row on the host: one thread.
#pragma once

#include <cstring>

#include "src/base/atomic.h"
#include "src/executor/thread_block/row.h"

namespace tutti {

class RowThreads {
 public:
  static constexpr std::uint32_t kThreads = 1;  // Per row.

  TUTTI_HOST_DEVICE RowThreads(std::uint32_t thread, std::uint32_t thread_count)
      : thread_(thread), thread_count_(thread_count) {}

  // The group's rows are first(), first() + step(), ...
  TUTTI_HOST_DEVICE std::uint32_t first() const { return thread_; }
  TUTTI_HOST_DEVICE std::uint32_t step() const { return thread_count_; }
  // leads(): whether this thread waits for the flag. all_done(): whether the leader's wait succeeded.
  TUTTI_HOST_DEVICE bool leads() const { return true; }
  TUTTI_HOST_DEVICE bool all_done(bool done) const { return done; }

  // At most kRowData bytes.
  TUTTI_HOST_DEVICE void put(std::byte* row, std::uint64_t flag, const std::byte* from, std::uint32_t bytes) const {
    std::memcpy(row, from, bytes);
    store_release(reinterpret_cast<std::uint64_t*>(row + kRowData), flag);
  }
  TUTTI_HOST_DEVICE void take(const std::byte* row, std::byte* to, std::uint32_t bytes) const {
    std::memcpy(to, row, bytes);
  }

 private:
  const std::uint32_t thread_, thread_count_;
};

}  // namespace tutti
