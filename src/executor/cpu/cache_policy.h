// Cache-dependent tuning of copies on this CPU; see docs/design/executor-cpu.md.
#pragma once

#include <cstdint>

namespace tutti {

struct CachePolicy {
  // Messages of at least this size are stored back into the slot they were read from. Some caches transfer a line
  // slowly to its writer after a remote read, unless the reader has also written the line.
  std::uint64_t stored_back_bytes = UINT64_MAX;
  // Messages of at least this size are not stored back, because they were written by non-temporal stores.
  std::uint64_t stored_back_end_bytes = UINT64_MAX;
  // Prefetch lines before they are written.
  bool fetches_targets = true;
  // Copies of at least this size use memcpy(), which may use non-temporal stores.
  std::uint64_t libc_copies_bytes = UINT64_MAX;
  // Buffers of at least this size are prefetched while they are read.
  std::uint64_t fetched_bytes = UINT64_MAX;
  // Outputs of at least this size are written with non-temporal stores, so that they do not evict the caches.
  std::uint64_t streamed_bytes = 4 << 20;

  bool stores_back(std::uint64_t bytes) const { return bytes >= stored_back_bytes && bytes < stored_back_end_bytes; }
  // Settings for calls without reductions, where every message was written by a copy.
  CachePolicy of_copies() const {
    CachePolicy cache_policy = *this;
    cache_policy.stored_back_end_bytes = libc_copies_bytes;
    return cache_policy;
  }
};

// Returns the settings for the CPU of this process.
CachePolicy cache_policy();

}  // namespace tutti
