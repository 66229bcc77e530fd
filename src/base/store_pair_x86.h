// store_pair() for x86: one aligned 16-byte store, so that a polling peer never gets the cache line between two stores.
// Readers must see both halves together. Intel and AMD guarantee this for processors with AVX. Older processors are not
// known to split an aligned store within a line, but give no guarantee.
#pragma once

#include <emmintrin.h>

#include <atomic>
#include <cstdint>

namespace tutti {

inline void store_pair(std::uint64_t* words, std::uint64_t data, std::uint64_t flag) {
  std::atomic_signal_fence(std::memory_order_release);  // The processor does not reorder stores.
  _mm_store_si128(reinterpret_cast<__m128i*>(words),
                  _mm_set_epi64x(static_cast<long long>(flag), static_cast<long long>(data)));
}

}  // namespace tutti
