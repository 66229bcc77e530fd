// store_pair() for x86: one aligned 16-byte store, so that a polling peer never takes the line between two stores. That
// the two halves are seen together is needed, and promised by Intel and AMD for processors with AVX; older ones are not
// known to split an aligned store within a line, but nobody says so.
#pragma once

#include <emmintrin.h>

#include <atomic>
#include <cstdint>

namespace tutti {

inline void store_pair(std::uint64_t* words, std::uint64_t data, std::uint64_t flag) {
  std::atomic_signal_fence(std::memory_order_release);  // Stores are not reordered by the processor.
  _mm_store_si128(reinterpret_cast<__m128i*>(words),
                  _mm_set_epi64x(static_cast<long long>(flag), static_cast<long long>(data)));
}

}  // namespace tutti
