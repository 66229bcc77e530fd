// AVX2 and F16C.
#pragma once

#include "src/base/vector_x86.h"

namespace tutti {
namespace {  // Anonymous, so that kernels stay inside the file compiled with the flags for them.

struct Avx2 : X86<Avx2> {
  static constexpr unsigned kBytes = 32;

  TUTTI_KERNEL static Vector<std::uint32_t, 8> words(Vector<std::uint16_t, 8> x) {
    return __builtin_bit_cast(Vector<std::uint32_t, 8>, _mm256_cvtepu16_epi32(__builtin_bit_cast(__m128i, x)));
  }
  TUTTI_KERNEL static Vector<std::uint32_t, 8> words(Vector<std::uint8_t, 8> x) {
    const __m128i bytes = _mm_cvtsi64_si128(__builtin_bit_cast(long long, x));
    return __builtin_bit_cast(Vector<std::uint32_t, 8>, _mm256_cvtepu8_epi32(bytes));
  }
  template <typename T>
  TUTTI_KERNEL static Vector<Bits<T>, 8> packed(Vector<std::uint32_t, 8> x) {
    const auto words = __builtin_bit_cast(__m256i, x);
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    if constexpr (sizeof(T) == 1) {
      return __builtin_bit_cast(Vector<std::uint8_t, 8>, _mm_cvtsi128_si64(_mm_packus_epi16(halves, halves)));
    } else {
      return __builtin_bit_cast(Vector<std::uint16_t, 8>, halves);
    }
  }
  // Packs four registers to bytes. Instructions pack within lanes of 128 bits, so the last step restores the order.
  TUTTI_KERNEL static Vector<std::uint8_t, 32> packed_four(Vector<std::uint32_t, 8> a, Vector<std::uint32_t, 8> b,
                                                           Vector<std::uint32_t, 8> c, Vector<std::uint32_t, 8> d) {
    const __m256i low = _mm256_packus_epi32(__builtin_bit_cast(__m256i, a), __builtin_bit_cast(__m256i, b));
    const __m256i high = _mm256_packus_epi32(__builtin_bit_cast(__m256i, c), __builtin_bit_cast(__m256i, d));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return __builtin_bit_cast(Vector<std::uint8_t, 32>,
                              _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
  }
  TUTTI_KERNEL static Vector<float, 8> from_halves(Vector<std::uint16_t, 8> x) {
    return __builtin_bit_cast(Vector<float, 8>, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, x)));
  }
  TUTTI_KERNEL static Vector<std::uint16_t, 8> to_halves(Vector<float, 8> x) {
    return __builtin_bit_cast(Vector<std::uint16_t, 8>,
                              _mm256_cvtps_ph(__builtin_bit_cast(__m256, x), _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace
}  // namespace tutti
