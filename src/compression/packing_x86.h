// Packing with AVX2: 32 codes at a time, by multiply-add of adjacent pairs. Include only in files compiled with AVX2,
// before the first use of Packing.
#pragma once

#include <immintrin.h>

#include "src/compression/packing.h"

namespace tutti {

// Two codes per byte.
template <class Isa>
requires(Isa::kBytes >= 32) struct Packing<Isa, 4> {
  TUTTI_KERNEL static void pack(const std::byte* codes, std::byte* encoded) {
    const __m256i weights = _mm256_set1_epi16(0x1001);  // Factors 1 and 16.
#pragma GCC unroll 2
    for (unsigned i = 0; i < kCompressionGroup; i += 64) {
      const __m256i low = _mm256_maddubs_epi16(load32(codes + i), weights);
      const __m256i high = _mm256_maddubs_epi16(load32(codes + i + 32), weights);
      const __m256i lanes = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(encoded + i / 2), lanes);
    }
  }

  TUTTI_KERNEL static void unpack(const std::byte* encoded, std::byte* codes) {
#pragma GCC unroll 4
    for (unsigned i = 0; i < kCompressionGroup; i += 32) {
      const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(encoded + i / 2)));
      const __m256i both = _mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), _mm256_and_si256(both, _mm256_set1_epi8(0x0f)));
    }
  }

 private:
  TUTTI_KERNEL static __m256i load32(const std::byte* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
};

// Four codes per three bytes. Each 16 codes become 12 bytes at the low end of a 16-byte store; the next store
// overwrites the rest.
template <class Isa>
requires(Isa::kBytes >= 32) struct Packing<Isa, 6> {
  TUTTI_KERNEL static void pack(const std::byte* codes, std::byte* encoded) {
    const __m256i pairs = _mm256_set1_epi16(0x4001);      // Factors 1 and 64.
    const __m256i fours = _mm256_set1_epi32(0x10000001);  // Factors 1 and 4096.
    const __m256i three = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,  //
                                           0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
#pragma GCC unroll 4
    for (unsigned i = 0; i < kCompressionGroup; i += 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
      const __m256i words = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, pairs), fours);
      const __m256i packed = _mm256_shuffle_epi8(words, three);
      const __m128i second = _mm256_extracti128_si256(packed, 1);
      std::byte* const to = encoded + i / 4 * 3;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
      if (i + 32 < kCompressionGroup) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 12), second);
      } else {
        std::memcpy(to + 12, &second, 12);
      }
    }
  }

  TUTTI_KERNEL static void unpack(const std::byte* encoded, std::byte* codes) {
    const __m256i low = _mm256_set1_epi32(0x00000fff), high = _mm256_set1_epi32(0x0fff0000);
    const __m256i even = _mm256_set1_epi16(0x003f), odd = _mm256_set1_epi16(0x3f00);
#pragma GCC unroll 4
    for (unsigned i = 0; i < kCompressionGroup; i += 32) {
      const __m256i fours =
          i + 32 < kCompressionGroup ? spread<0>(encoded + i / 4 * 3) : spread<4>(encoded + i / 4 * 3);
      const __m256i pairs =
          _mm256_or_si256(_mm256_and_si256(fours, low), _mm256_and_si256(_mm256_slli_epi32(fours, 4), high));
      const __m256i bytes =
          _mm256_or_si256(_mm256_and_si256(pairs, even), _mm256_and_si256(_mm256_slli_epi16(pairs, 2), odd));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), bytes);
    }
  }

 private:
  // Spreads 24 packed bytes to words of three bytes each. The load of the second 12 bytes begins kBefore bytes early,
  // so that it does not read past the group.
  template <int kBefore>
  TUTTI_KERNEL static __m256i spread(const std::byte* from) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 12 - kBefore));
    constexpr char b = kBefore;
    const __m256i words = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,  //
                                           b, b + 1, b + 2, -1, b + 3, b + 4, b + 5, -1,          //
                                           b + 6, b + 7, b + 8, -1, b + 9, b + 10, b + 11, -1);
    return _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1), words);
  }
};

}  // namespace tutti
