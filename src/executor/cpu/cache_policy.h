// Cache policy of this CPU; see docs/design/executor-cpu.md.
#pragma once

#include <cstdint>

namespace tutti {

struct CachePolicy {
  // Messages of so many bytes are stored back into the slots where they have been read. Where a read takes a line from
  // the core that has written it, that core is slow to get it back, unless the reader has written it, too.
  std::uint64_t stored_back_bytes = UINT64_MAX;
  // But not those of so many: they were written by instructions that do not read what they overwrite.
  std::uint64_t stored_back_end_bytes = UINT64_MAX;
  // Lines that will be written are fetched ahead.
  bool fetches_targets = true;
  // Copies of so many bytes are left to the C library, which has instructions that do not read what they overwrite.
  std::uint64_t libc_copies_bytes = UINT64_MAX;
  // Buffers of so many bytes are fetched ahead as they are read.
  std::uint64_t fetched_bytes = UINT64_MAX;
  // Outputs of so many bytes are written past the caches, which they would wash out.
  std::uint64_t streamed_bytes = 4 << 20;

  bool stores_back(std::uint64_t bytes) const { return bytes >= stored_back_bytes && bytes < stored_back_end_bytes; }
  // Of calls that reduce nothing: whoever wrote a message has copied it.
  CachePolicy of_copies() const {
    CachePolicy cache_policy = *this;
    cache_policy.stored_back_end_bytes = libc_copies_bytes;
    return cache_policy;
  }
};

// Of the CPU that this process runs on.
CachePolicy cache_policy();

}  // namespace tutti
