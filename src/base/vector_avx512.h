// AVX-512 with F, BW, VL and DQ.
#pragma once

#include "src/base/vector_x86.h"

namespace tutti {
namespace {  // Anonymous, so that kernels stay inside the file compiled with the flags for them.

struct Avx512 : X86<Avx512> {
  static constexpr unsigned kBytes = 64;
  static constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns about its own unmasked conversions.

  TUTTI_KERNEL static Vector<std::uint32_t, 16> words(Vector<std::uint16_t, 16> x) {
    return __builtin_bit_cast(Vector<std::uint32_t, 16>,
                              _mm512_maskz_cvtepu16_epi32(kAll, __builtin_bit_cast(__m256i, x)));
  }
  TUTTI_KERNEL static Vector<std::uint32_t, 16> words(Vector<std::uint8_t, 16> x) {
    return __builtin_bit_cast(Vector<std::uint32_t, 16>,
                              _mm512_maskz_cvtepu8_epi32(kAll, __builtin_bit_cast(__m128i, x)));
  }
  template <typename T>
  TUTTI_KERNEL static Vector<Bits<T>, 16> packed(Vector<std::uint32_t, 16> x) {
    const auto words = __builtin_bit_cast(__m512i, x);
    if constexpr (sizeof(T) == 1) {
      return __builtin_bit_cast(Vector<std::uint8_t, 16>, _mm512_maskz_cvtepi32_epi8(kAll, words));
    } else {
      return __builtin_bit_cast(Vector<std::uint16_t, 16>, _mm512_maskz_cvtepi32_epi16(kAll, words));
    }
  }
  TUTTI_KERNEL static Vector<float, 16> from_halves(Vector<std::uint16_t, 16> x) {
    return __builtin_bit_cast(Vector<float, 16>, _mm512_maskz_cvtph_ps(kAll, __builtin_bit_cast(__m256i, x)));
  }
  TUTTI_KERNEL static Vector<std::uint16_t, 16> to_halves(Vector<float, 16> x) {
    return __builtin_bit_cast(Vector<std::uint16_t, 16>,
                              _mm512_maskz_cvtps_ph(kAll, __builtin_bit_cast(__m512, x), _MM_FROUND_TO_NEAREST_INT));
  }
  template <typename Line>
  TUTTI_KERNEL static void stream_line(const Line& value, std::byte* to) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __builtin_bit_cast(__m512i, value));
  }
};

}  // namespace
}  // namespace tutti
